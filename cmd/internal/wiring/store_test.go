package wiring_test

import (
	"path/filepath"
	"strings"
	"testing"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink"
)

func open(t *testing.T, url string) (sink.Store, error) {
	c := config.Default()
	c.Store = url
	return wiring.OpenStore(t.Context(), &c)
}

func TestOpenDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, url := range []string{filepath.Join(dir, "path"), "file://" + filepath.Join(dir, "url"),
		"file://localhost" + filepath.Join(dir, "host")} {
		s, err := open(t, url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if err := sink.Probe(t.Context(), s); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		again, err := open(t, s.URL())
		if err != nil || again.URL() != s.URL() {
			t.Errorf("%s: its URL %s does not open the same store: %v", url, s.URL(), err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"", "the URL is empty"},
		{"file://data/x", "three slashes"},
		{"file://", "three slashes"},
		{"s3:///prefix", "bucket is missing"},
		{"gs://bucket", `unknown scheme "gs"`},
		{"s3://AKIA123:hunter2@bucket/x", "credentials do not belong into the URL"},
		{"s3://AKIA123:hunter2@buc ket/x", "cannot be parsed"},
		{"s3://bucket/a//b", "empty segment"},
	} {
		s, err := open(t, tt.url)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want an error with %q", tt.url, err, tt.want)
			continue
		}
		if s != nil {
			t.Errorf("%q: a store along with the error", tt.url)
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "AKIA123") {
			t.Errorf("the error shows credentials: %v", err)
		}
	}
}
