package owner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"giantstream/ingest/client"
)

// Guard keeps a process from publishing to a topic that its pipeline does not own, or no longer owns. It is safe for
// concurrent use.
type Guard struct {
	Client *client.Client
	Topic  string
	Mine   Pipeline
	// Every is for how long an answer of the brokers counts.
	Every time.Duration
	Log   *slog.Logger

	mu sync.Mutex
	// topicID and end are of the topic and its log of claims when the pipeline was its owner, at checked.
	topicID string
	end     int64
	checked time.Time
}

// Check claims the topic with this id where it has no owner, and returns ErrForeign if another pipeline has it. While
// nobody claims anything, it costs one request in Every.
func (g *Guard) Check(ctx context.Context, topicID string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	owned := !g.checked.IsZero() && topicID == g.topicID
	if owned && time.Since(g.checked) < g.Every {
		return nil
	}
	began := time.Now()
	if owned {
		ends, err := g.Client.EndOffsets(ctx, LogOf(g.Topic))
		if err != nil {
			return err
		}
		if ends[LogOf(g.Topic)][0] == g.end {
			g.checked = began
			return nil
		}
	}
	g.checked = time.Time{}
	o, claimed, err := Ensure(ctx, g.Client, g.Topic, g.Mine)
	if err != nil {
		return err
	}
	if claimed {
		g.Log.Info("the topic belongs to this pipeline from now on", "topic", g.Topic, "pipeline", g.Mine.String(),
			"before", o.From)
	}
	g.topicID, g.end, g.checked = o.TopicID, o.end, began
	return nil
}
