package s3store_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"giantstream/sink"
	"giantstream/sink/s3store"
)

// send passes a request on to the server and returns its response. The Host header stays, because
// it is signed.
func send(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host = "http", endpoint
	return http.DefaultTransport.RoundTrip(out)
}

func forward(w http.ResponseWriter, r *http.Request) {
	resp, err := send(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body) // a client that went away notices itself
}

func isCreate(r *http.Request) bool {
	return r.Method == http.MethodPut && r.Header.Get("If-None-Match") == "*"
}

func TestCreateWhoseResponseIsLost(t *testing.T) {
	var attempts atomic.Int64
	opts := proxy(t, func(r *http.Request) http.HandlerFunc {
		if !isCreate(r) || attempts.Add(1) > 1 {
			return nil
		}
		return func(w http.ResponseWriter, r *http.Request) {
			// The object is stored, but the answer never arrives.
			if resp, err := send(r); err == nil {
				_ = resp.Body.Close()
			}
			panic(http.ErrAbortHandler)
		}
	})
	s := open(t, opts)
	if err := s.Create(t.Context(), "m/1", []byte("writer 7")); err != nil {
		t.Fatalf("the only writer was told: %v", err)
	}
	if n := attempts.Load(); n != 2 {
		t.Errorf("%d attempts, want 2: the test has not tested the retry", n)
	}
	if err := s.Create(t.Context(), "m/1", []byte("writer 8")); !errors.Is(err, sink.ErrExists) {
		t.Errorf("another writer: got %v, want ErrExists", err)
	}
}

func TestCreateRetriesConflicts(t *testing.T) {
	var attempts atomic.Int64
	opts := proxy(t, func(r *http.Request) http.HandlerFunc {
		if !isCreate(r) || attempts.Add(1) > 2 {
			return nil
		}
		return s3Error(http.StatusConflict, "ConditionalRequestConflict")
	})
	if err := open(t, opts).Create(t.Context(), "m/1", []byte("x")); err != nil {
		t.Error(err)
	}
	if n := attempts.Load(); n != 3 {
		t.Errorf("%d attempts, want 3", n)
	}
}

func TestProbeRefusesStoresWithoutConditions(t *testing.T) {
	for name, meddle := range map[string]func(r *http.Request) http.HandlerFunc{
		"condition ignored": func(r *http.Request) http.HandlerFunc {
			if !isCreate(r) {
				return nil
			}
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("ETag", `"0123456789abcdef0123456789abcdef"`)
				w.WriteHeader(http.StatusOK)
			}
		},
		"condition not implemented": func(r *http.Request) http.HandlerFunc {
			if !isCreate(r) {
				return nil
			}
			return s3Error(http.StatusNotImplemented, "NotImplemented")
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := sink.Probe(t.Context(), open(t, proxy(t, meddle)))
			if !errors.Is(err, sink.ErrNoConditions) {
				t.Errorf("got %v, want ErrNoConditions", err)
			}
		})
	}
}

func TestReadOfReplacedObject(t *testing.T) {
	s := open(t, options())
	ctx := t.Context()
	if err := sink.PutBytes(ctx, s, "x", []byte("first")); err != nil {
		t.Fatal(err)
	}
	obj, err := s.Open(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.PutBytes(ctx, s, "x", []byte("other")); err != nil {
		t.Fatal(err)
	}
	if _, err := obj.ReadAt(make([]byte, 5), 0); !errors.Is(err, sink.ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
}

// A body that breaks off is read on from where it broke, whether the object was opened or fetched.
func TestReadResumesBrokenBody(t *testing.T) {
	data := strings.Repeat("0123456789", 5000)
	for name, read := range map[string]func(s *s3store.Store) ([]byte, error){
		"fetched": func(s *s3store.Store) ([]byte, error) { return sink.ReadAll(t.Context(), s, "x") },
		"opened": func(s *s3store.Store) ([]byte, error) {
			object, err := s.Open(t.Context(), "x")
			if err != nil {
				return nil, err
			}
			return io.ReadAll(io.NewSectionReader(object, 0, object.Size()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var gets atomic.Int64
			s := open(t, proxy(t, func(r *http.Request) http.HandlerFunc {
				if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/x") || gets.Add(1) > 1 {
					return nil
				}
				return breakOff
			}))
			if err := sink.PutBytes(t.Context(), s, "x", []byte(data)); err != nil {
				t.Fatal(err)
			}
			got, err := read(s)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != data {
				t.Error("the object came back different")
			}
			if gets.Load() < 2 {
				t.Errorf("%d GETs, nothing broke off", gets.Load())
			}
		})
	}
}

// breakOff passes on the first 1,000 bytes of a body.
func breakOff(w http.ResponseWriter, r *http.Request) {
	resp, err := send(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.CopyN(w, resp.Body, 1000)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// A document takes one request, and so do a small object that is verified and a replacement's look at what is there.
func TestRequestsOfSmallObjects(t *testing.T) {
	var requests atomic.Int64
	s := open(t, proxy(t, func(*http.Request) http.HandlerFunc { requests.Add(1); return nil }))
	if err := sink.PutBytes(t.Context(), s, "x", []byte("first")); err != nil {
		t.Fatal(err)
	}
	ref, err := sink.RefOf(t.Context(), s, "x")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		call func() error
		want int64
	}{
		"read":    {func() error { _, err := sink.ReadAll(t.Context(), s, "x"); return err }, 1},
		"verify":  {func() error { return sink.Verify(t.Context(), s, ref) }, 1},
		"replace": {func() error { return s.Replace(t.Context(), "x", []byte("first"), []byte("other")) }, 2},
	} {
		before := requests.Load()
		if err := test.call(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := requests.Load() - before; got != test.want {
			t.Errorf("%s: %d requests, want %d", name, got, test.want)
		}
		if err := sink.PutBytes(t.Context(), s, "x", []byte("first")); err != nil {
			t.Fatal(err)
		}
	}
}

func s3Error(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>injected</Message></Error>")
	}
}
