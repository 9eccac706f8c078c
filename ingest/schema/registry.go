package schema

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// Options say how to reach a schema registry.
type Options struct {
	// URL is http(s)://host:port, perhaps with a path.
	URL string
	// Username and Password for HTTP basic authentication; "" for none.
	Username, Password string
	// TLS for https; nil for the system's authorities.
	TLS *tls.Config
	// Clock times how long an unknown schema is remembered.
	Clock func() time.Time
}

// Registry is a schema registry. It is safe for concurrent use.
type Registry struct {
	client *sr.Client
	url    string
	clock  func() time.Time

	mu  sync.Mutex
	err error // of the last request
}

const (
	// requestTimeout bounds a request.
	requestTimeout = 10 * time.Second
	// maxAnswer bounds what is read of an answer; registries refuse to store larger schemas.
	maxAnswer = 8 << 20
	// maxReferences bounds the schemas that one refers to, directly or not.
	maxReferences = 256
)

// NewRegistry returns a registry; it connects when first used.
func NewRegistry(o Options) (*Registry, error) {
	if o.URL == "" {
		return nil, errors.New("schema registry: no URL given")
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: o.TLS, ForceAttemptHTTP2: true,
		IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4}
	opts := []sr.ClientOpt{
		sr.URLs(o.URL), sr.UserAgent("giantstream"),
		sr.HTTPClient(&http.Client{Timeout: requestTimeout, Transport: limited{transport}}),
	}
	if o.Username != "" {
		opts = append(opts, sr.BasicAuth(o.Username, o.Password))
	}
	client, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("schema registry: %w", err)
	}
	return &Registry{client: client, url: o.URL, clock: o.Clock}, nil
}

// limited cuts answers off at maxAnswer.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

// Err returns why the last request to the registry failed, nil if the registry answered.
func (r *Registry) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// errUnknown: the registry has no such schema.
var errUnknown = errors.New("the schema registry does not know it")

// errNoSchema: a gateway or another server answers in the registry's place. Registries store no empty schema.
var errNoSchema = errors.New("the answer has no schema; check the registry's URL, and what lies before it")

// The registry's codes for an id without a schema, and for unknown subjects and versions that
// references name. A 404 without one of these codes comes from some other server.
// https://docs.confluent.io/platform/current/schema-registry/develop/api.html
var unknownCodes = map[int]bool{40401: true, 40402: true, 40403: true}

// source is a schema with all schemas that it refers to.
type source struct {
	sr.Schema
	// references, each after those that it refers to.
	references []reference
}

// reference is a schema and the name by which others refer to it.
type reference struct {
	name, text string
}

// fetch returns a schema. The error wraps errUnknown, or means that the registry could not be
// asked.
func (r *Registry) fetch(ctx context.Context, id int) (*source, error) {
	s, err := r.fetchAll(ctx, id)
	if err != nil {
		err = fmt.Errorf("schema %d: %w", id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err = err; errors.Is(err, errUnknown) || ctx.Err() != nil {
		r.err = nil
	}
	return s, err
}

func (r *Registry) fetchAll(ctx context.Context, id int) (*source, error) {
	if id > math.MaxInt32 {
		return nil, fmt.Errorf("%w: ids end at %d", errUnknown, math.MaxInt32) // Confluent's says so without a code
	}
	main, err := r.client.SchemaByID(ctx, id)
	if err == nil && main.Schema == "" {
		err = errNoSchema
	}
	if err != nil {
		return nil, r.explain(err)
	}
	s := &source{Schema: main}
	return s, r.resolve(ctx, s, main.References, map[string]bool{})
}

// resolve adds the references, each after those that it refers to.
func (r *Registry) resolve(ctx context.Context, s *source, refs []sr.SchemaReference, seen map[string]bool) error {
	for _, ref := range refs {
		if seen[ref.Name] {
			continue
		}
		if seen[ref.Name] = true; len(seen) > maxReferences {
			return fmt.Errorf("%w: it refers to more than %d others", errUnknown, maxReferences)
		}
		got, err := r.client.SchemaByVersion(ctx, ref.Subject, ref.Version)
		if err == nil && got.Schema.Schema == "" {
			err = errNoSchema
		}
		if err != nil {
			return fmt.Errorf("reference %q (subject %q, version %d): %w",
				ref.Name, ref.Subject, ref.Version, r.explain(err))
		}
		if err := r.resolve(ctx, s, got.References, seen); err != nil {
			return err
		}
		s.references = append(s.references, reference{ref.Name, got.Schema.Schema})
	}
	return nil
}

func (r *Registry) explain(err error) error {
	answer, ok := errors.AsType[*sr.ResponseError](err)
	switch {
	case !ok:
		return fmt.Errorf("asking the schema registry: %w", err)
	case answer.StatusCode == http.StatusNotFound && unknownCodes[answer.ErrorCode]:
		return fmt.Errorf("%w (code %d)", errUnknown, answer.ErrorCode)
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the schema registry refuses us (HTTP %d); check its username and password",
			answer.StatusCode)
	case answer.StatusCode == http.StatusNotFound:
		return errors.New("what answers is no schema registry (HTTP 404 without its code); check its URL")
	}
	return fmt.Errorf("the schema registry answers HTTP %d, code %d", answer.StatusCode, answer.ErrorCode)
}
