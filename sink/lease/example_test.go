package lease_test

import (
	"context"
	"errors"
	"fmt"

	"giantstream/sink"
	"giantstream/sink/lease"
	"giantstream/sink/memstore"
)

func Example() {
	ctx := context.Background()
	store := &memstore.Store{}
	view := func(holder string) *lease.Lease {
		l, err := lease.New(lease.Options{Store: store, Name: "refresh", Holder: holder})
		if err != nil {
			panic(err)
		}
		return l
	}
	held, err := view("worker-1").Acquire(ctx)
	if err != nil {
		return
	}
	_, err = view("worker-2").Acquire(ctx)
	fmt.Println(errors.Is(err, lease.ErrHeld)) // ask again later

	working, release := held.Keep(ctx) // renews; working ends when the lease is lost
	err = sink.PutBytes(working, held.Store(), "result", []byte("42"))
	fmt.Println(err)
	release()

	_, err = view("worker-2").Acquire(ctx)
	fmt.Println(err)
	// Output:
	// true
	// <nil>
	// <nil>
}
