package sink_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

// stored puts random bytes into a new store and returns them.
func stored(t testing.TB, size int64) (*memstore.Store, []byte, sink.Ref) {
	t.Helper()
	data := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = rng.Read(data)
	store := &memstore.Store{}
	if err := sink.PutBytes(t.Context(), store, "x", data); err != nil {
		t.Fatal(err)
	}
	ref, err := sink.RefOf(t.Context(), store, "x")
	if err != nil {
		t.Fatal(err)
	}
	return store, data, ref
}

func TestOpenVerifiedRefusesOtherBytes(t *testing.T) {
	for _, size := range []int64{0, 1, 1000, 8 << 20, 8<<20 + 1, 13<<20 + 5} {
		store, data, ref := stored(t, size)
		object, err := sink.OpenVerified(t.Context(), store, ref)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.NewSectionReader(object, 0, object.Size()))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: read %d others (%v)", size, len(got), err)
		}
		if err := object.Close(); err != nil {
			t.Error(err)
		}
		bad := map[string][]byte{"longer": append(bytes.Clone(data), 0)}
		if size > 0 {
			bad["shorter"] = data[:size-1]
			flipped := bytes.Clone(data)
			flipped[rand.Int64N(size)] ^= 1 << rand.IntN(8)
			bad["a bit flipped"] = flipped
		}
		for name, data := range bad {
			if err := sink.PutBytes(t.Context(), store, "x", data); err != nil {
				t.Fatal(err)
			}
			if err := sink.Verify(t.Context(), store, ref); !errors.Is(err, sink.ErrDamaged) {
				t.Errorf("%d bytes, %s: %v", size, name, err)
			}
		}
	}
}

// A fault of the store is no damage: it may pass.
func TestOpenVerifiedTellsFaultsFromDamage(t *testing.T) {
	store, _, ref := stored(t, 100)
	fault := errors.New("connection reset")
	store.Fail = func(op, _ string) error {
		if op == "read" {
			return fault
		}
		return nil
	}
	if err := sink.Verify(t.Context(), store, ref); !errors.Is(err, fault) || errors.Is(err, sink.ErrDamaged) {
		t.Error(err)
	}
	ref.Key = "none"
	if err := sink.Verify(t.Context(), store, ref); !errors.Is(err, sink.ErrNotFound) {
		t.Error(err)
	}
}

func BenchmarkOpenVerified(b *testing.B) {
	store, _, ref := stored(b, 4<<20)
	b.SetBytes(ref.Bytes)
	for b.Loop() {
		if err := sink.Verify(context.Background(), store, ref); err != nil {
			b.Fatal(err)
		}
	}
}
