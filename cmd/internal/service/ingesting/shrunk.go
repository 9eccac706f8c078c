package ingesting

import (
	"context"
	"fmt"
)

// size counts what the newest manifests say is live.
type size struct{ nodes, edges int64 }

func (in *Ingest) size(ctx context.Context) (n size, err error) {
	heads, err := in.Heads.NewestOfAll(ctx)
	for _, head := range heads {
		if head != nil {
			n.nodes += head.Nodes
			n.edges += head.Edges
		}
	}
	return n, err
}

// Shrunk says by how much the graph is smaller than when the process started, if a state was gone
// with its checkpoints and topics and was built again from files; "" otherwise, and if nothing is
// missing. Files that are sent again are the source of the embedded broker's topics, so that their
// loss is accepted. Files that lack something are noticed here.
func (in *Ingest) Shrunk(ctx context.Context) (string, error) {
	if !in.Resent || in.metrics.feed.Lost.Load() == 0 {
		return "", nil
	}
	now, err := in.size(ctx)
	if err != nil || now.nodes >= in.began.nodes && now.edges >= in.began.edges {
		return "", err
	}
	return fmt.Sprintf("the local folder and the checkpoints in the store were gone, and the files do not have all "+
		"that was committed before: %d nodes and %d edges are live, %d and %d were", now.nodes, now.edges,
		in.began.nodes, in.began.edges), nil
}
