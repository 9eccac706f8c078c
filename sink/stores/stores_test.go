package stores_test

import (
	"path/filepath"
	"strings"
	"testing"

	"giantstream/sink"
	"giantstream/sink/stores"
)

func TestOpenDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, url := range []string{filepath.Join(dir, "path"), "file://" + filepath.Join(dir, "url"), "file://localhost" + filepath.Join(dir, "host")} {
		s, err := stores.Open(t.Context(), url, stores.Options{})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if err := sink.Probe(t.Context(), s); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		again, err := stores.Open(t.Context(), s.URL(), stores.Options{})
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
		s, err := stores.Open(t.Context(), tt.url, stores.Options{})
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
