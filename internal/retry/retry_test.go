package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"giantstream/internal/retry"
)

func ExampleBackoff() {
	pause := retry.Backoff{Min: 50 * time.Millisecond, Max: 300 * time.Millisecond}
	for range 5 {
		fmt.Print(pause.Next(), " ")
	}
	pause.Reset()
	fmt.Println(pause.Next())
	// Output: 50ms 100ms 200ms 300ms 300ms 50ms
}

func ExampleBackoff_Wait() {
	failures := 2
	produce := func() error {
		if failures--; failures >= 0 {
			return errors.New("the broker is away")
		}
		return nil
	}
	ctx := context.Background()
	pause := retry.Backoff{Min: time.Millisecond, Max: time.Second}
	for {
		err := produce()
		if err == nil {
			break
		}
		fmt.Println(err)
		if err := pause.Wait(ctx); err != nil {
			return // ctx has ended
		}
	}
	fmt.Println("produced")
	// Output:
	// the broker is away
	// the broker is away
	// produced
}

func TestBackoffWithoutMaxKeepsDoubling(t *testing.T) {
	pause := retry.Backoff{Min: time.Second}
	for want := time.Second; want <= 16*time.Second; want *= 2 {
		if got := pause.Next(); got != want {
			t.Errorf("pause of %v, want %v", got, want)
		}
	}
}

func TestWaitSleepsOrEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pause := retry.Backoff{Min: time.Second, Max: time.Minute}
		start := time.Now()
		for range 3 {
			if err := pause.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if slept := time.Since(start); slept != 7*time.Second {
			t.Errorf("three pauses take %v, want 7s", slept)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := pause.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want the context's error after 1s", err, time.Since(start))
		}
	})
}
