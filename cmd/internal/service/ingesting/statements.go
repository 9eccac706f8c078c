package ingesting

import (
	"context"
	"slices"

	"giantstream/ingest"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// InputOutcomes is what became of the records of an input.
type InputOutcomes struct {
	// Input is "nodes", "edges", "attributes" or "orders", Topic what the shards read.
	Input string `json:"input"`
	Topic string `json:"topic"`
	mutation.Outcomes
}

// OutcomesOf returns what the newest manifests have counted of each input, nil manifests for shards without one. The
// mirror is none: its records repeat what edges say.
func OutcomesOf(heads []*commitlog.Manifest, topics ingest.Topics) []InputOutcomes {
	all := []InputOutcomes{{Input: "nodes", Topic: topics.Nodes}, {Input: "edges", Topic: topics.Edges}}
	for _, topic := range topics.Further {
		if topic != "" {
			input := "attributes"
			switch {
			case topic == topics.Orders:
				input = "orders"
			case slices.Contains(topics.OneKind, topic):
				input = "edges"
			}
			all = append(all, InputOutcomes{Input: input, Topic: topic})
		}
	}
	for i := range all {
		for _, head := range heads {
			if head != nil {
				all[i].Outcomes = all[i].Plus(head.Counted[all[i].Topic].Total())
			}
		}
	}
	return all
}

// Outcomes returns what became of the records that any process has committed since this one started.
func (in *Ingest) Outcomes(ctx context.Context) ([]InputOutcomes, error) {
	heads, err := in.Heads.NewestOfAll(ctx)
	if err != nil {
		return nil, err
	}
	all := OutcomesOf(heads, in.Topics)
	for i := range all {
		all[i].Outcomes = all[i].Minus(in.counted[i].Outcomes)
	}
	return all, nil
}
