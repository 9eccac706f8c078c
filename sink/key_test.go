package sink_test

import (
	"errors"
	"testing"

	"giantstream/sink"
)

func TestCheckPrefix(t *testing.T) {
	for _, prefix := range []string{"", "a", "a/", "a/b", "a/b/", "a/.", "shards/0/manifests/0000"} {
		if err := sink.CheckPrefix(prefix); err != nil {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
	for _, prefix := range []string{"/", "/a", "a//", "../", "a/../", "./", "a b", "a/ä"} {
		if err := sink.CheckPrefix(prefix); !errors.Is(err, sink.ErrBadKey) {
			t.Errorf("prefix %q: got %v, want ErrBadKey", prefix, err)
		}
	}
}
