package build

import (
	"context"
	"iter"
	"sync"

	"giantstream/internal/tasks"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
)

// Log is the commit log at a cut, as tasks read it: each shard on its own.
type Log interface {
	// Cut names the cut: the newest manifest included, per shard.
	Cut() map[int]int64
	// Size returns how much there is to read, and how it is divided.
	Size(ctx context.Context) (stages.Size, error)
	// Rows yields the committed rows of a split. Of several rows of a node, that of the highest Seq counts; all may
	// come, in any order.
	Rows(ctx context.Context, s stages.Split) iter.Seq2[generation.Row, error]
	// Fingerprint returns a fingerprint of no nodes.
	Fingerprint() Fingerprint
}

// Fingerprint identifies a graph, whatever the order in which nodes are added. A node is added once.
type Fingerprint interface {
	Add(*rows.Row)
	Sum() string
	// Merge adds what another fingerprint has seen, given its Sum.
	Merge(sum string) error
}

// build is a generation as tasks see it.
type build struct {
	*Worker
	plan stages.Plan
	doc  *generation.Doc
	mu   sync.Mutex
	done map[tasks.Task]*done
	took stageTimes
	// blocks that were read, as *[]byte: under a limit of memory, fresh ones cost more than reading them.
	blocks sync.Pool
	models
}
