package recent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/recent"
	"giantstream/sink/storetest"
)

func every(string) bool { return true }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) sink.Store { return recent.New(1<<20, every).Store(&memstore.Store{}) })
}

// counted counts the objects that are opened.
func counted() (*memstore.Store, *int) {
	opened := new(int)
	return &memstore.Store{Fail: func(op, _ string) error {
		if op == "open" {
			*opened++
		}
		return nil
	}}, opened
}

func TestWhatWasStoredIsNotRead(t *testing.T) {
	inner, opened := counted()
	c := recent.New(100, func(key string) bool { return !strings.HasPrefix(key, "other/") })
	one, two := c.Store(inner), c.Store(inner)
	for _, test := range []struct {
		key    string
		size   int
		reader func([]byte) io.Reader
		opens  int
	}{
		{"rows/1", 20, func(b []byte) io.Reader { return bytes.NewReader(b) }, 0},
		{"rows/2", 20, func(b []byte) io.Reader { return bytes.NewBuffer(b) }, 1}, // cannot be read twice
		{"rows/large", 26, func(b []byte) io.Reader { return bytes.NewReader(b) }, 1},
		{"other/1", 20, func(b []byte) io.Reader { return bytes.NewReader(b) }, 1},
	} {
		data := bytes.Repeat([]byte("x"), test.size)
		if err := one.Put(t.Context(), test.key, test.reader(data), int64(test.size)); err != nil {
			t.Fatal(err)
		}
		*opened = 0
		got, err := sink.ReadAll(t.Context(), two, test.key)
		if err != nil || !bytes.Equal(got, data) || *opened != test.opens {
			t.Errorf("%s: %q, %v, opened %d times, want %d", test.key, got, err, *opened, test.opens)
		}
	}
}

func TestTheOldestAreForgotten(t *testing.T) {
	inner, opened := counted()
	s := recent.New(100, every).Store(inner)
	for i := range 9 {
		if err := sink.PutBytes(t.Context(), s, fmt.Sprint("rows/", i), make([]byte, 20)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 9 {
		*opened = 0
		if _, err := sink.ReadAll(t.Context(), s, fmt.Sprint("rows/", i)); err != nil {
			t.Fatal(err)
		}
		if kept := i >= 4; kept != (*opened == 0) {
			t.Errorf("object %d was opened %d times; the last 5 are kept", i, *opened)
		}
	}
}

// What the store did not acknowledge is not kept, and neither is what was deleted or replaced.
func TestNothingElseIsKept(t *testing.T) {
	lost := errors.New("lost")
	inner := &memstore.Store{}
	s := recent.New(100, every).Store(inner)
	inner.FailAfter = func(op, key string) error {
		if key == "rows/lost" && op == "put" {
			return lost
		}
		return nil
	}
	if err := sink.PutBytes(t.Context(), s, "rows/lost", []byte("1")); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	for _, key := range []string{"rows/lost", "rows/gone", "rows/replaced"} {
		if key != "rows/lost" {
			if err := sink.PutBytes(t.Context(), s, key, []byte("1")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Delete(t.Context(), "rows/gone"); err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(t.Context(), "rows/replaced", []byte("1"), []byte("2")); err != nil {
		t.Fatal(err)
	}
	if err := inner.Delete(context.Background(), "rows/lost"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"rows/lost", "rows/gone"} {
		if _, err := sink.ReadAll(t.Context(), s, key); !errors.Is(err, sink.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", key, err)
		}
	}
	if got, err := sink.ReadAll(t.Context(), s, "rows/replaced"); err != nil || string(got) != "2" {
		t.Errorf("replaced: %q, %v", got, err)
	}
}
