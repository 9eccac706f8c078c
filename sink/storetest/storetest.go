// Package storetest is the conformance suite that every sink.Store passes.
package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"giantstream/sink"
)

// Run tests the store that open makes: an empty one for each call.
func Run(t *testing.T, open func(t *testing.T) sink.Store) {
	for _, tt := range []struct {
		name string
		test func(t *testing.T, s sink.Store)
	}{
		{"put replaces", putReplaces},
		{"put needs the promised size", putSize},
		{"put of what is summed already", putSummed},
		{"create is once", createOnce},
		{"create has one winner", createRace},
		{"create repeated with the same bytes is one create", createRepeated},
		{"replace compares", replace},
		{"replace has one winner", replaceRace},
		{"not found", notFound},
		{"fetch", fetch},
		{"list", list},
		{"list stops when asked", listStops},
		{"delete is idempotent", deleteIdempotent},
		{"keys are checked", keys},
		{"reads at any offset", readAt},
		{"large objects", large},
		{"puts are never torn", putRace},
		{"context is honoured", cancelled},
		{"probe", probe},
		{"url", url},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, open(t)) })
	}
}

func put(t *testing.T, s sink.Store, key, data string) {
	t.Helper()
	if err := sink.PutBytes(t.Context(), s, key, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

// fetch tests stores that read an object in one request.
func fetch(t *testing.T, s sink.Store) {
	f, ok := s.(sink.Fetcher)
	if !ok {
		t.Skip("this store reads an object in two steps")
	}
	put(t, s, "a/x", "12345")
	put(t, s, "a/empty", "")
	for _, test := range []struct {
		key  string
		most int64
		want string
	}{{"a/x", 100, "12345"}, {"a/x", 5, "12345"}, {"a/x", 2, "12"}, {"a/x", 0, ""}, {"a/empty", 9, ""}} {
		if got, err := f.Fetch(t.Context(), test.key, test.most); err != nil || string(got) != test.want {
			t.Errorf("%d bytes of %s: %q, %v", test.most, test.key, got, err)
		}
	}
	if _, err := f.Fetch(t.Context(), "a/y", 9); !errors.Is(err, sink.ErrNotFound) {
		t.Errorf("nothing there: %v", err)
	}
	if _, err := f.Fetch(t.Context(), "../x", 9); !errors.Is(err, sink.ErrBadKey) {
		t.Errorf("bad key: %v", err)
	}
}

func wantObject(t *testing.T, s sink.Store, key, want string) {
	t.Helper()
	got, err := sink.ReadAll(t.Context(), s, key)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("object %s holds %.40q, want %.40q", key, got, want)
	}
}

func listKeys(t *testing.T, s sink.Store, prefix, after string) []string {
	t.Helper()
	keys := []string{}
	for info, err := range s.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func putSummed(t *testing.T, s sink.Store) {
	for _, size := range []int{0, 1000, 17 << 20} {
		data := strings.Repeat("0123456789", size/10)
		content := sink.Summed{SectionReader: io.NewSectionReader(strings.NewReader(data), 0, int64(len(data))),
			SHA256: sha256.Sum256([]byte(data))}
		if err := s.Put(t.Context(), "summed", content, int64(len(data))); err != nil {
			t.Fatal(err)
		}
		wantObject(t, s, "summed", data)
	}
}

func putReplaces(t *testing.T, s sink.Store) {
	for _, data := range []string{"first", "second, longer", "", "3"} {
		put(t, s, "dir/x", data)
		wantObject(t, s, "dir/x", data)
	}
}

func putSize(t *testing.T, s sink.Store) {
	put(t, s, "x", "old")
	for _, size := range []int64{2, 8} {
		// A reader that cannot tell its size, as a pipe.
		r := io.MultiReader(strings.NewReader("data!"))
		if err := s.Put(t.Context(), "x", r, size); err == nil && size > 5 {
			t.Errorf("put of 5 bytes as %d succeeded", size)
		}
	}
	got, err := sink.ReadAll(t.Context(), s, "x")
	if err != nil {
		t.Fatal(err)
	}
	// S3 clients send the first size bytes; a store may refuse instead.
	if string(got) != "old" && string(got) != "da" {
		t.Errorf("object holds %q after puts of a wrong size", got)
	}
}

func createOnce(t *testing.T, s sink.Store) {
	ctx := t.Context()
	if err := s.Create(ctx, "m/1", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(ctx, "m/1", []byte("yours")); !errors.Is(err, sink.ErrExists) {
		t.Errorf("second create: got %v, want ErrExists", err)
	}
	wantObject(t, s, "m/1", "mine")
	put(t, s, "m/2", "put")
	if err := s.Create(ctx, "m/2", []byte("created")); !errors.Is(err, sink.ErrExists) {
		t.Errorf("create over a put: got %v, want ErrExists", err)
	}
	if err := s.Delete(ctx, "m/1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(ctx, "m/1", []byte("yours")); err != nil {
		t.Errorf("create after delete: %v", err)
	}
}

func createRace(t *testing.T, s sink.Store) {
	const writers = 16
	for round := range 4 {
		key := fmt.Sprintf("race/%020d.json", round)
		errs := make([]error, writers)
		start := make(chan struct{})
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				<-start
				errs[w] = s.Create(t.Context(), key, fmt.Appendf(nil, "writer %d", w))
			})
		}
		close(start)
		wg.Wait()
		var winners []int
		for w, err := range errs {
			switch {
			case err == nil:
				winners = append(winners, w)
			case !errors.Is(err, sink.ErrExists):
				t.Errorf("writer %d: got %v, want nil or ErrExists", w, err)
			}
		}
		if len(winners) != 1 {
			t.Fatalf("round %d: writers %v won, want exactly one", round, winners)
		}
		wantObject(t, s, key, fmt.Sprintf("writer %d", winners[0]))
	}
}

func createRepeated(t *testing.T, s sink.Store) {
	for range 3 { // as after lost responses
		if err := s.Create(t.Context(), "x", []byte("from writer 7")); err != nil {
			t.Fatal(err)
		}
	}
}

func notFound(t *testing.T, s sink.Store) {
	put(t, s, "dir/x", "data")
	for _, key := range []string{"none", "dir", "dir/y", "dir/x/y"} {
		if _, err := s.Open(t.Context(), key); !errors.Is(err, sink.ErrNotFound) {
			t.Errorf("open %s: got %v, want ErrNotFound", key, err)
		}
		if _, err := sink.ReadAll(t.Context(), s, key); !errors.Is(err, sink.ErrNotFound) {
			t.Errorf("read %s: got %v, want ErrNotFound", key, err)
		}
	}
}

func list(t *testing.T, s sink.Store) {
	// In byte order, which is not the order of a directory walk: '-' < '.' < '/' < '0'.
	all := []string{"a-b/x", "a.b", "a/1", "a/10", "a/2", "a/b/c", "a0", "b/1", "b/2/3", "c"}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(all)) {
		put(t, s, all[i], all[i])
	}
	for _, tt := range []struct {
		prefix, after string
		want          []string
	}{
		{"", "", all},
		{"a/", "", []string{"a/1", "a/10", "a/2", "a/b/c"}},
		{"a", "", all[:7]},
		{"a/1", "", []string{"a/1", "a/10"}},
		{"a/b/", "", []string{"a/b/c"}},
		{"a/", "a/1", []string{"a/10", "a/2", "a/b/c"}},
		{"a/", "a/3", []string{"a/b/c"}},
		{"", "a/b/c", []string{"a0", "b/1", "b/2/3", "c"}},
		{"", "a/b", []string{"a/b/c", "a0", "b/1", "b/2/3", "c"}},
		{"b/", "a", []string{"b/1", "b/2/3"}},
		{"b/", "c", nil},
		{"none/", "", nil},
		{"a/1/", "", nil},
		{"c", "c", nil},
	} {
		if got := listKeys(t, s, tt.prefix, tt.after); !slices.Equal(got, tt.want) {
			t.Errorf("list prefix %q after %q: got %v, want %v", tt.prefix, tt.after, got, tt.want)
		}
	}
	for info, err := range s.List(t.Context(), "b/2/", "") {
		if err != nil || info.Size != int64(len("b/2/3")) || info.Modified.IsZero() {
			t.Errorf("got %+v, %v; want the size and time of b/2/3", info, err)
		}
	}
	for _, err := range s.List(t.Context(), "../", "") {
		if !errors.Is(err, sink.ErrBadKey) {
			t.Errorf("list of a bad prefix: got %v, want ErrBadKey", err)
		}
	}
}

func listStops(t *testing.T, s sink.Store) {
	for i := range 20 {
		put(t, s, fmt.Sprintf("k/%d/x", i), "")
	}
	n := 0
	for range s.List(t.Context(), "k/", "") {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("saw %d keys, want 3", n)
	}
}

func deleteIdempotent(t *testing.T, s sink.Store) {
	put(t, s, "dir/x", "data")
	for _, key := range []string{"dir/x", "dir/x", "none/at/all"} {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %s: %v", key, err)
		}
	}
	if got := listKeys(t, s, "", ""); len(got) != 0 {
		t.Errorf("%v is left", got)
	}
}

func keys(t *testing.T, s sink.Store) {
	ctx := t.Context()
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b",
		"../a", "a b", "a~", "ä", "a\x00", `a\b`, "a:b", "a%2f",
		strings.Repeat("a", sink.MaxSegmentLen+1), strings.Repeat("a/", sink.MaxKeyLen/2) + "a",
	} {
		_, openErr := s.Open(ctx, key)
		for op, err := range map[string]error{
			"put":    s.Put(ctx, key, strings.NewReader("x"), 1),
			"create": s.Create(ctx, key, []byte("x")),
			"delete": s.Delete(ctx, key),
			"open":   openErr,
		} {
			if !errors.Is(err, sink.ErrBadKey) {
				t.Errorf("%s %q: got %v, want ErrBadKey", op, key, err)
			}
		}
	}
	good := []string{"a", "a/b=c/d-e_f.G7", ".hidden", "...", "-", strings.Repeat("a", sink.MaxSegmentLen)}
	for _, key := range good {
		put(t, s, key, key)
		wantObject(t, s, key, key)
		if err := s.Delete(ctx, key); err != nil {
			t.Error(err)
		}
	}
}

func readAt(t *testing.T, s sink.Store) {
	put(t, s, "x", "0123456789")
	obj, err := s.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := obj.Close(); err != nil {
			t.Error(err)
		}
	}()
	if obj.Size() != 10 {
		t.Errorf("size is %d, want 10", obj.Size())
	}
	for _, tt := range []struct {
		off  int64
		len  int
		want string
		eof  bool
	}{
		{0, 10, "0123456789", false},
		{3, 4, "3456", false},
		{9, 1, "9", false},
		{8, 5, "89", true},
		{10, 1, "", true},
		{99, 3, "", true},
		{0, 20, "0123456789", true},
	} {
		p := make([]byte, tt.len)
		n, err := obj.ReadAt(p, tt.off)
		if string(p[:n]) != tt.want {
			t.Errorf("ReadAt(%d bytes, %d): got %q, want %q", tt.len, tt.off, p[:n], tt.want)
		}
		// At the very end io.EOF may come along with all of the bytes.
		if tt.eof && !errors.Is(err, io.EOF) || !tt.eof && err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("ReadAt(%d bytes, %d): error %v, want EOF: %t", tt.len, tt.off, err, tt.eof)
		}
	}
	if _, err := obj.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("ReadAt at -1 succeeded")
	}
}

func large(t *testing.T, s sink.Store) {
	data := make([]byte, 20<<20+3)
	chacha := rand.NewChaCha8([32]byte{1})
	chacha.Read(data) //nolint:errcheck // never fails
	if err := sink.PutBytes(t.Context(), s, "big/object", data); err != nil {
		t.Fatal(err)
	}
	got, err := sink.ReadAll(t.Context(), s, "big/object")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Error("the large object came back different")
	}
}

func putRace(t *testing.T, s sink.Store) {
	const writers, rounds = 4, 8
	object := func(w int) []byte { return bytes.Repeat([]byte{'a' + byte(w)}, 100_000+w) }
	put(t, s, "x", string(object(0)))
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range rounds {
				if err := sink.PutBytes(t.Context(), s, "x", object(w)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range rounds {
				got, err := sink.ReadAll(t.Context(), s, "x")
				if errors.Is(err, sink.ErrChanged) {
					continue // allowed, when replaced over and over
				}
				if err != nil {
					t.Error(err)
				} else if !bytes.Equal(got, object(int(got[0]-'a'))) {
					t.Errorf("read a mixture of two puts: %d bytes from %q to %q", len(got), got[0], got[len(got)-1])
				}
			}
		})
	}
	wg.Wait()
}

func cancelled(t *testing.T, s sink.Store) {
	put(t, s, "x", "data")
	ctx, cancel := context.WithCancel(t.Context())
	obj, err := s.Open(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer obj.Close() //nolint:errcheck // read only
	cancel()
	_, readErr := obj.ReadAt(make([]byte, 1), 0)
	_, openErr := s.Open(ctx, "x")
	var listErr error
	for _, err := range s.List(ctx, "", "") {
		listErr = err
	}
	for op, err := range map[string]error{
		"put":    s.Put(ctx, "y", strings.NewReader("x"), 1),
		"create": s.Create(ctx, "y", []byte("x")),
		"delete": s.Delete(ctx, "x"),
		"open":   openErr,
		"read":   readErr,
		"list":   listErr,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", op, err)
		}
	}
	if got := listKeys(t, s, "", ""); !slices.Equal(got, []string{"x"}) {
		t.Errorf("the store holds %v after cancelled calls, want x", got)
	}
}

func probe(t *testing.T, s sink.Store) {
	if err := sink.Probe(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := listKeys(t, s, "", ""); len(got) != 0 {
		t.Errorf("the probe left %v", got)
	}
}

func url(t *testing.T, s sink.Store) {
	if !strings.Contains(s.URL(), "://") || strings.Contains(s.URL(), "@") {
		t.Errorf("URL is %q, want scheme://… without credentials", s.URL())
	}
}

// Ref describes an object as it is stored now, for readers that verify what they read.
func Ref(t testing.TB, store sink.Store, key string) sink.Ref {
	t.Helper()
	ref, err := sink.RefOf(t.Context(), store, key)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
