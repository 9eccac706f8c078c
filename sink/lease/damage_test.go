package lease

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

func overwrite(t *testing.T, store sink.Store, number int64, data string) {
	t.Helper()
	if err := sink.PutBytes(t.Context(), store, key("refresh", number), []byte(data)); err != nil {
		t.Fatal(err)
	}
}

// A damaged object expires like a silent holder, and its number is not given again.
func TestDamagedObjectExpires(t *testing.T) {
	for _, garbage := range []string{"", "garbage", "{}", `{"format":9,"number":1}`, `{"format":2,"number":1}`} {
		store, c := &memstore.Store{}, &clock{}
		held := acquire(t, process(t, store, "a", &clock{}))
		overwrite(t, store, 1, garbage)
		b := process(t, store, "b", c)
		if by := mustBeHeld(t, b); by.Damaged == "" || by.Number != 1 {
			t.Errorf("%q: %v", garbage, by)
		}
		c.advance(defaultTTL)
		if got := acquire(t, b); got.Number() != 2 {
			t.Errorf("%q: number %d, want 2", garbage, got.Number())
		}
		if err := held.renew(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("%q: the first holder renews: %v", garbage, err)
		}
	}
}

// A holder that lives repairs its object, so nobody takes the lease from it.
func TestLivingHolderRepairsItsObject(t *testing.T) {
	store, c := &memstore.Store{}, &clock{}
	held := acquire(t, process(t, store, "a", &clock{}))
	b := process(t, store, "b", c)
	for range 3 {
		overwrite(t, store, 1, "garbage")
		_ = mustBeHeld(t, b)
		c.advance(defaultTTL - 1)
		if err := held.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.advance(2)
		if by := mustBeHeld(t, b); by.Damaged != "" || by.Holder != "a" {
			t.Errorf("%v", by)
		}
	}
}

// Every bit of a holder's object is covered: with a bit flipped it is damaged, whatever else it may look like.
func TestEveryBitOfTheObjectCounts(t *testing.T) {
	store := &memstore.Store{}
	acquire(t, process(t, store, "a", &clock{}))
	good, err := sink.ReadAll(t.Context(), store, key("refresh", 1))
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(good) {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if r, err := decode(bad, placeOf(store, "refresh", 1), 1); !errors.Is(err, errDamaged) {
			t.Errorf("bit %d of byte %d: %+v, %v", bit%8, bit/8, r, err)
		}
	}
}

func TestRepairFreesTheLeaseAndKeepsItsNumber(t *testing.T) {
	store := &memstore.Store{}
	if repaired, err := Repair(t.Context(), store, "refresh", time.Unix(1, 0)); repaired || err != nil {
		t.Errorf("nothing to repair: %t, %v", repaired, err)
	}
	zombie := acquire(t, process(t, store, "a", &clock{}))
	if repaired, err := Repair(t.Context(), store, "refresh", time.Unix(1, 0)); repaired || err != nil {
		t.Errorf("a whole object: %t, %v", repaired, err)
	}
	overwrite(t, store, 1, "garbage")
	if repaired, err := Repair(t.Context(), store, "refresh", time.Unix(1, 0)); !repaired || err != nil {
		t.Errorf("garbage: %t, %v", repaired, err)
	}
	if held := acquire(t, process(t, store, "b", &clock{})); held.Number() != 2 {
		t.Errorf("number %d, want 2", held.Number())
	}
	if err := sink.PutBytes(t.Context(), zombie.Store(), "work", nil); !errors.Is(err, ErrLost) {
		t.Errorf("the holder before writes: %v", err)
	}
}

// An object that is none of the lease's is in nobody's way.
func TestForeignObjectsAreIgnored(t *testing.T) {
	store := &memstore.Store{}
	if err := sink.PutBytes(t.Context(), store, "lease/refresh/notes.txt", []byte("x")); err != nil {
		t.Fatal(err)
	}
	acquire(t, process(t, store, "a", &clock{}))
}

// A late renewal does not bring back an object that the successor has removed.
func TestLateRenewalLeavesTheStoreAlone(t *testing.T) {
	store := &memstore.Store{}
	zombie := acquire(t, process(t, store, "a", &clock{}))
	if err := store.Delete(t.Context(), key("refresh", 1)); err != nil {
		t.Fatal(err)
	}
	if err := zombie.renew(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("renew: %v, want ErrLost", err)
	}
	if numbers, err := list(t.Context(), store, "refresh", 0); err != nil || len(numbers) > 0 {
		t.Errorf("objects %v (%v)", numbers, err)
	}
}
