package publishing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"giantstream/cmd/internal/service/heads"
	"giantstream/sink/memstore"
	"giantstream/stream/publish"
)

// Many readers of logs refuse a line that names a field twice.
func TestLinesOfTheLogNameFieldsOnce(t *testing.T) {
	var log bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	store := &memstore.Store{Fail: func(string, string) error {
		if log.Len() > 0 {
			stop()
		}
		return errors.New("no answer")
	}}
	p := &Publish{Store: store, Heads: &heads.Heads{Store: store, Shards: 1},
		Log: slog.New(slog.NewJSONHandler(&log, nil))}
	o := &outlet{topic: "vectors", model: func(int) *publish.Model { return &publish.Model{Generation: 1} }}
	if err := p.follower(0, o, nil).Run(ctx); err != nil {
		t.Fatal(err)
	}
	line, _, _ := bytes.Cut(log.Bytes(), []byte("\n"))
	for _, field := range []string{`"shard":`, `"topic":`} {
		if got := bytes.Count(line, []byte(field)); got != 1 {
			t.Errorf("%s is in %s %d times", field, line, got)
		}
	}
}
