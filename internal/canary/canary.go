// Package canary makes secrets for tests, and finds them in what a program says.
package canary

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// New returns a secret that occurs nowhere by chance, another one for each n. Its letters are valid in hosts, tokens,
// keys of S3 and YAML.
func New(n int) string { return fmt.Sprintf("Zq7Vx%dKjWp9Qz", n) }

// Find returns how text holds a secret: as it is, in either case, percent-encoded, in hexadecimal or in base64; "" if
// it does not.
func Find(text, secret string) string {
	lower := strings.ToLower(text)
	for how, form := range map[string]string{
		"as it is":        secret,
		"percent-encoded": url.QueryEscape(secret),
		"in hexadecimal":  hex.EncodeToString([]byte(secret)),
	} {
		if strings.Contains(lower, strings.ToLower(form)) {
			return how
		}
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		// What stands before the secret decides which of three forms it has; its ends depend on their neighbours.
		for before := range 3 {
			form := encoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
			if strings.Contains(text, form[4:len(form)-4]) {
				return "in base64"
			}
		}
	}
	return ""
}
