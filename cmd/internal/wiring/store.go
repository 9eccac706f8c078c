package wiring

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/sink/s3store"
)

// OpenStore opens the object store that the configuration names by its URL:
//
//	file:///var/lib/giantstream   a local directory (made if missing)
//	./data                        the same, as a path
//	s3://bucket/prefix            S3 or a server that speaks its protocol
func OpenStore(ctx context.Context, cfg *config.Config) (sink.Store, error) {
	rawURL := cfg.Store
	scheme, _, found := strings.Cut(rawURL, "://")
	if !found && rawURL == "" {
		return nil, fmt.Errorf("open store: the URL is empty; give a directory, file:///path or s3://bucket/prefix")
	}
	if dir, ok := StoreDir(rawURL); ok {
		return openDir(dir)
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		// url.Error would repeat the URL, which may hold a password.
		return nil, fmt.Errorf("open store: the %s:// URL cannot be parsed", scheme)
	}
	if u.User != nil {
		u.User = nil // neither half of it may show up in a log
		return nil, fmt.Errorf("open store %s: credentials do not belong into the URL; "+
			"set them in the configuration or environment", u)
	}
	switch u.Scheme {
	case "file":
		return nil, fmt.Errorf("open store %q: file URLs have three slashes and an absolute path: "+
			"file:///var/lib/giantstream", rawURL)
	case "s3":
		if u.Host == "" {
			return nil, fmt.Errorf("open store %q: the bucket is missing: s3://bucket/prefix", rawURL)
		}
		s, err := s3store.Open(ctx, u.Host, u.Path, s3Options(&cfg.S3))
		if err != nil {
			return nil, err // not a nil *s3store.Store in an interface
		}
		return s, nil
	default:
		return nil, fmt.Errorf("open store %q: unknown scheme %q; use file:///path or s3://bucket/prefix",
			rawURL, u.Scheme)
	}
}

func s3Options(c *config.S3) s3store.Options {
	return s3store.Options{Endpoint: c.Endpoint, Region: c.Region, PathStyle: c.PathStyle, Insecure: c.Insecure,
		AccessKey: string(c.AccessKey), SecretKey: string(c.SecretKey), CAFile: c.CAFile}
}

// StoreDir returns the directory that a store is in; ok is false if it is none, or the URL is wrong. A path is
// taken as it is, and in a URL %41 stands for A.
func StoreDir(store string) (dir string, ok bool) {
	if !strings.Contains(store, "://") {
		return store, store != ""
	}
	u, err := url.Parse(store)
	if err != nil || u.Scheme != "file" || u.User != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", false
	}
	return filepath.FromSlash(u.Path), true
}

// DirURL is the URL of the store in a directory.
func DirURL(dir string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()
}

func openDir(path string) (sink.Store, error) {
	s, err := dirstore.Open(path)
	if err != nil {
		return nil, err
	}
	return s, nil
}
