package icebergsink

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// discreet removes credentials from what a catalog says of a request that it refuses. The client of Iceberg makes
// errors of that, which are logged.
type discreet struct {
	http.RoundTripper
	secrets []string
}

// maxRefusal bounds what is kept of a refusal.
const maxRefusal = 64 << 10

// RoundTrip implements http.RoundTripper.
func (d discreet) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(r)
	if err != nil || answer.StatusCode < http.StatusBadRequest {
		return answer, err
	}
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if closed := answer.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	secrets := d.secrets
	// A token that the catalog has given in exchange for a client's password.
	if _, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok {
		secrets = append(secrets[:len(secrets):len(secrets)], token)
	}
	for _, secret := range secrets {
		if secret != "" {
			said = bytes.ReplaceAll(said, []byte(secret), []byte("***"))
		}
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(said)), int64(len(said))
	return answer, nil
}
