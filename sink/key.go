package sink

import (
	"errors"
	"fmt"
	"strings"
)

// ErrBadKey: the key or prefix is not of the form that Store describes.
var ErrBadKey = errors.New("invalid object key")

// Limits of a key, in bytes: S3 takes 1,024 for the bucket prefix and the key together, local file
// systems 255 for one segment.
const (
	MaxKeyLen     = 512
	MaxSegmentLen = 200
)

// CheckKey reports whether key may name an object, as Store describes keys.
func CheckKey(key string) error {
	if key == "" {
		return fmt.Errorf("%w: empty", ErrBadKey)
	}
	if len(key) > MaxKeyLen {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrBadKey, len(key), MaxKeyLen)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if err := checkSegment(key, segment); err != nil {
			return err
		}
	}
	return nil
}

// CheckPrefix reports whether prefix may be given to Store.List: "" or the beginning of a key.
func CheckPrefix(prefix string) error {
	dir, last := SplitKey(prefix)
	if len(last) < len(prefix) { // there is a slash
		if err := CheckKey(dir); err != nil {
			return err
		}
	}
	return checkBytes(prefix, last)
}

// SplitKey cuts a key or prefix at its last slash. dir has no trailing slash and is "" if there is
// none.
func SplitKey(key string) (dir, base string) {
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		return key[:i], key[i+1:]
	}
	return "", key
}

func checkSegment(key, segment string) error {
	switch {
	case segment == "":
		return fmt.Errorf("%w: %q has an empty segment", ErrBadKey, key)
	case segment == "." || segment == "..":
		return fmt.Errorf("%w: %q has a dot segment", ErrBadKey, key)
	case len(segment) > MaxSegmentLen:
		return fmt.Errorf("%w: %q has a segment of %d bytes, the limit is %d",
			ErrBadKey, key, len(segment), MaxSegmentLen)
	}
	return checkBytes(key, segment)
}

func checkBytes(key, segment string) error {
	for i := range len(segment) {
		switch c := segment[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '=', c == '-':
		default:
			return fmt.Errorf("%w: %q has the byte %q; use letters, digits and . _ = - /", ErrBadKey, key, c)
		}
	}
	return nil
}
