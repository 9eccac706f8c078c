package operate

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"giantstream/cmd/internal/status"
	"giantstream/config"
	"giantstream/stream/commitlog"
)

// What cannot be told to stop, as a read from a file system that hangs, is not waited for.
func TestStatusDoesNotWaitForWhatHangs(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	_, err := waitAtMost(t.Context(), 10*time.Millisecond, func(context.Context) (int, error) {
		<-over
		return 1, nil
	})
	if err == nil || !strings.Contains(err.Error(), "no answer from the store within 10ms") {
		t.Error(err)
	}
	// What ends in time, with an error of its own or without one, is passed on.
	own := errors.New("own")
	if _, err := waitAtMost(t.Context(), time.Minute, func(context.Context) (int, error) {
		return 0, own
	}); !errors.Is(err, own) {
		t.Error(err)
	}
	if n, err := waitAtMost(t.Context(), time.Minute, func(context.Context) (int, error) { return 7, nil }); n != 7 ||
		err != nil {
		t.Error(n, err)
	}
}

// The table of the cost has a line for each kind of work.
func TestStatusPrintsTheCost(t *testing.T) {
	cost := status.CostOf(new(config.Default()), status.ListPrices)
	var out bytes.Buffer
	if err := printCost(&out, &cost); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"commits", "folding", "checkpoints", "sum", "2,628,000"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// Vectors are counted by name, ascending.
func TestStatusCountsVectors(t *testing.T) {
	st := &status.Status{Vectors: map[string]int64{"image": 6457, "external": 1}}
	if said := vectorsIn(st); said != ", 1 vector external, 6,457 vectors image" {
		t.Error(said)
	}
	if said := vectorsIn(&status.Status{}); said != "" {
		t.Error(said)
	}
}

// Workers whose settings differ publish a mixture of formats, which status says.
func TestStatusSaysThatFormatsAreMixed(t *testing.T) {
	shard := func(n int, format string) status.Shard {
		return status.Shard{Shard: n, Published: commitlog.Published{Seq: 3, Format: format}}
	}
	if said := mixedFormats([]status.Shard{shard(0, ""), shard(1, "float32"), {Shard: 2}}); said != "" {
		t.Error(said)
	}
	said := mixedFormats([]status.Shard{shard(0, "int8/128"), shard(1, ""), shard(2, "int8/128")})
	if !strings.Contains(said, "float32 (shards 1) and as int8/128 (shards 0, 2)") {
		t.Error(said)
	}
}
