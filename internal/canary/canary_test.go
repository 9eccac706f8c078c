package canary

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	secret := New(3)
	for _, text := range []string{secret, "x" + strings.ToUpper(secret) + "y", url.QueryEscape("user:" + secret + "@"),
		fmt.Sprintf("%X", "a"+secret), base64.StdEncoding.EncodeToString([]byte("me:" + secret)),
		base64.StdEncoding.EncodeToString([]byte("you:" + secret)),
		base64.URLEncoding.EncodeToString([]byte("us:" + secret + "!"))} {
		if Find(text, secret) == "" {
			t.Errorf("not found in %s", text)
		}
	}
	for _, text := range []string{"", New(4), base64.StdEncoding.EncodeToString([]byte(New(5)))} {
		if how := Find(text, secret); how != "" {
			t.Errorf("found %s in %s", how, text)
		}
	}
}
