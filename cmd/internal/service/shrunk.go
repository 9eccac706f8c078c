package service

import (
	"context"
	"fmt"
)

// size counts what the newest manifests say is live.
type size struct{ nodes, edges int64 }

func (s *Service) size(ctx context.Context) (n size, err error) {
	for p := range s.cfg.Shards {
		head, err := s.logs.get(ctx, s.store, p)
		if err != nil {
			return n, err
		}
		if head != nil {
			n.nodes += head.Nodes
			n.edges += head.Edges
		}
	}
	return n, nil
}

// Shrunk says by how much the graph is smaller than when the process started, if a state was gone
// with its checkpoints and topics and was built again from files; "" otherwise, and if nothing is
// missing. Files that are sent again are the source of the embedded broker's topics, so that their
// loss is accepted. Files that lack something are noticed here.
func (s *Service) Shrunk(ctx context.Context) (string, error) {
	if !s.resent || s.metrics.feed.Lost.Load() == 0 {
		return "", nil
	}
	now, err := s.size(ctx)
	if err != nil || now.nodes >= s.began.nodes && now.edges >= s.began.edges {
		return "", err
	}
	return fmt.Sprintf("the local folder and the checkpoints in the store were gone, and the files do not have all "+
		"that was committed before: %d nodes and %d edges are live, %d and %d were", now.nodes, now.edges,
		s.began.nodes, s.began.edges), nil
}
