// Package rest is a small client for the HTTP interfaces of vector databases.
package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"giantstream/sink/vectordb"
)

// requestTime bounds a request and its answer.
const requestTime = time.Minute

// maxAnswer bounds an answer in memory.
const maxAnswer = 256 << 20

// Client sends requests to one server.
type Client struct {
	base   string
	header http.Header
	http   *http.Client
}

// New returns a client. conf is nil for the system's certificates; header goes with every request.
func New(base string, header http.Header, conf *tls.Config) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:errcheck // it is one
	transport.TLSClientConfig = conf
	// A redirection would take the key of the header to another server.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: strings.TrimRight(base, "/"), header: header,
		http: &http.Client{Transport: transport, Timeout: requestTime, CheckRedirect: stay}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Error is an answer that is no success.
type Error struct {
	Method, Path string
	Status       int
	Body         string // its beginning
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %d %s: %s", e.Method, e.Path, e.Status, http.StatusText(e.Status), e.Body)
}

// Final reports whether the server would refuse the request again.
func (e *Error) Final() bool { return Refused(e.Status) }

// Refused reports whether a status stays what it is when the request is repeated.
func Refused(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// Status returns the status of an Error, 0 for another error.
func Status(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return 0
}

// Do sends body as JSON, or as it is if it is of type []byte, and decodes the answer into out unless that is nil.
func (c *Client) Do(ctx context.Context, method, path string, body, out any) error {
	var content []byte
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case []byte:
		content, kind = b, "application/x-ndjson"
	default:
		var err error
		if content, err = json.Marshal(body); err != nil {
			return fmt.Errorf("%w: %w", vectordb.ErrRefused, err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%w: %w", vectordb.ErrRefused, err)
	}
	for key, values := range c.header {
		req.Header[key] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, path, err)
	case len(answer) > maxAnswer:
		return fmt.Errorf("%s %s: the answer has more than %d bytes", method, path, maxAnswer)
	case res.StatusCode < 200 || res.StatusCode > 299:
		said := c.withoutHeader(string(answer[:min(len(answer), 64<<10)]))
		return &Error{method, path, res.StatusCode, said[:min(len(said), 500)]}
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: the answer is not what was expected: %w", method, path, err)
	}
	return nil
}

// withoutHeader returns what a server said without the credentials in the header: some servers and proxies repeat the
// requests that they refuse.
func (c *Client) withoutHeader(said string) string {
	for _, values := range c.header {
		for _, value := range values {
			credential := value[strings.LastIndexByte(value, ' ')+1:] // behind Basic or Bearer
			if credential != "" {
				said = strings.ReplaceAll(said, credential, "***")
			}
		}
	}
	return said
}
