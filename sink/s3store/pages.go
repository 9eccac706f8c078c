package s3store

import (
	"net/http"
	"strings"
)

// pages makes a failure of the server, which is tried again, out of a page of HTML that says 404. It is of a proxy
// before the store, of whose objects it says nothing. A store answers in XML, or without a body.
type pages struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p pages) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusNotFound ||
		!strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") ||
		r.Header.Get("X-Amz-Content-Sha256") == "" { // it asks for credentials, and not the store
		return resp, err
	}
	_ = resp.Body.Close()
	resp.Body, resp.ContentLength = http.NoBody, 0
	resp.StatusCode, resp.Status = http.StatusBadGateway, "404 with a page of HTML, which is no answer of a store"
	return resp, nil
}
