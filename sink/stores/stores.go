// Package stores opens a sink.Store from its URL:
//
//	file:///var/lib/giantstream   a local directory (made if missing)
//	./data                        the same, as a path
//	s3://bucket/prefix            S3 or a server that speaks its protocol
package stores

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/sink/s3store"
)

// Options are what a URL does not say.
type Options struct {
	S3 s3store.Options
}

// Open opens the store that rawURL names.
func Open(ctx context.Context, rawURL string, opts Options) (sink.Store, error) {
	scheme, _, found := strings.Cut(rawURL, "://")
	if !found {
		if rawURL == "" {
			return nil, fmt.Errorf("open store: the URL is empty; give a directory, file:///path or s3://bucket/prefix")
		}
		return openDir(rawURL)
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		// url.Error would repeat the URL, which may hold a password.
		return nil, fmt.Errorf("open store: the %s:// URL cannot be parsed", scheme)
	}
	if u.User != nil {
		u.User = nil // neither half of it may show up in a log
		return nil, fmt.Errorf("open store %s: credentials do not belong into the URL; set them in the configuration or environment", u)
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" && u.Host != "localhost" || u.Path == "" {
			return nil, fmt.Errorf("open store %q: file URLs have three slashes and an absolute path: file:///var/lib/giantstream", rawURL)
		}
		return openDir(u.Path)
	case "s3":
		if u.Host == "" {
			return nil, fmt.Errorf("open store %q: the bucket is missing: s3://bucket/prefix", rawURL)
		}
		s, err := s3store.Open(ctx, u.Host, u.Path, opts.S3)
		if err != nil {
			return nil, err // not a nil *s3store.Store in an interface
		}
		return s, nil
	default:
		return nil, fmt.Errorf("open store %q: unknown scheme %q; use file:///path or s3://bucket/prefix", rawURL, u.Scheme)
	}
}

func openDir(path string) (sink.Store, error) {
	s, err := dirstore.Open(path)
	if err != nil {
		return nil, err
	}
	return s, nil
}
