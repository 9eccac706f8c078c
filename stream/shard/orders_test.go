package shard

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"giantstream/stream/mutation"
)

// TestAnOrderIsBounded: of more items than one order may have, the first by id are kept, in whatever order they come,
// and the log says so.
func TestAnOrderIsBounded(t *testing.T) {
	var batches [][]mutation.Line
	for from := 0; from < maxOrderLines+2000; from += 1500 {
		var lines []mutation.Line
		for i := from; i < from+1500; i++ {
			lines = append(lines, mutation.Line{Item: fmt.Sprintf("i%06d", i), Quantity: 1})
		}
		batches = append(batches, lines)
	}
	for _, backwards := range []bool{false, true} {
		if backwards {
			slices.Reverse(batches)
		}
		var log bytes.Buffer
		o := newPipeline(t, newBroker(1), 0).options(0)
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		opened, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close() })
		s := &lone{Shard: opened, t: t}
		for _, lines := range batches {
			s.say(inputOf(ordersTopic), 1, "o", record{{Op: mutation.AddLines, Order: &mutation.Order{Lines: lines}}})
		}
		kept := s.state.pending.orders.all[orderID{byte(inputOf(ordersTopic)), "o"}].value.lines
		if len(kept) != maxOrderLines || kept[0].item != "i000000" || kept[maxOrderLines-1].item != "i009999" {
			t.Errorf("backwards %t: %d lines are kept, %s to %s", backwards, len(kept), kept[0].item,
				kept[len(kept)-1].item)
		}
		if s.state.meta.Lines != maxOrderLines || s.state.meta.Orders != 1 {
			t.Errorf("backwards %t: %d orders of %d lines are counted", backwards, s.state.meta.Orders, s.state.meta.Lines)
		}
		if !strings.Contains(log.String(), "ingest.baskets.id") {
			t.Errorf("backwards %t: the log says %s", backwards, log.String())
		}
	}
}
