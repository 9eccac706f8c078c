package parquetio

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

type number struct {
	N int64 `parquet:"n"`
}

func numbers() Format[number] {
	return Format[number]{Name: "numbers/1", Size: func(*number) int { return 8 },
		Generation: func(r *number) int64 { return r.N }}
}

func count(n int64, err error) func(func(number, error) bool) {
	return func(yield func(number, error) bool) {
		for i := range n {
			if !yield(number{i}, nil) {
				return
			}
		}
		if err != nil {
			yield(number{}, err)
		}
	}
}

func TestVerifyNoticesLostRows(t *testing.T) {
	d := newDraft()
	info, err := write(t.Context(), d, numbers(), count(1000, nil))
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(f, info); err != nil {
		t.Errorf("a good file: %v", err)
	}
	info.Rows++ // as if the writer had lost one
	if err := verify(f, info); err == nil ||
		!strings.Contains(err.Error(), "1001 rows were written, its footer says 1000") {
		t.Errorf("got %v, want an error with both counts", err)
	}
}

func TestPutCleansUp(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	boom := errors.New("boom")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	refuse := &memstore.Store{Fail: func(string, string) error { return boom }}
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		store sink.Store
		err   error // of the sequence
		want  error
	}{
		{"success", t.Context(), new(memstore.Store), nil, nil},
		{"the sequence fails", t.Context(), new(memstore.Store), boom, boom},
		{"the store fails", t.Context(), refuse, nil, boom},
		{"cancelled", ctx, new(memstore.Store), nil, context.Canceled},
	} {
		info, err := Put(tt.ctx, tt.store, "numbers", numbers(), count(1000, tt.err))
		if !errors.Is(err, tt.want) || (err != nil) != (info == Info{}) {
			t.Errorf("%s: got %+v, %v; want the error %v", tt.name, info, err, tt.want)
		}
		left, err := os.ReadDir(temp)
		if err != nil || len(left) > 0 {
			t.Errorf("%s: temporary files are left: %v, %v", tt.name, left, err)
		}
	}
}

func TestMetadataNamesFormatAndGeneration(t *testing.T) {
	var s memstore.Store
	if _, err := Put(t.Context(), &s, "numbers", numbers(), count(6, nil)); err != nil {
		t.Fatal(err)
	}
	obj, err := s.Open(t.Context(), "numbers")
	if err != nil {
		t.Fatal(err)
	}
	f, err := openFile(obj, obj.Size())
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{formatKey: "numbers/1", generationKey: "5"} {
		if got, _ := f.Lookup(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}
