package wiring

import (
	"strconv"
	"strings"

	"giantstream/config"
)

// GraphSettings returns the settings by which records become the graph, by their names in the
// configuration. With other ones, the same records would be another graph. Limits are not among
// them: a record beyond a limit is a dead letter, which can be replayed.
func GraphSettings(cfg *config.Config) map[string]string {
	topics, in := TopicsOf(cfg), cfg.Ingest
	s := map[string]string{
		"kafka.topics.nodes":      cfg.Kafka.Topics.Nodes,
		"kafka.topics.edges":      cfg.Kafka.Topics.Edges,
		"ingest.repartition":      strconv.FormatBool(in.Repartition),
		"ingest.nodes.format":     in.Nodes.Format,
		"ingest.nodes.id":         in.Nodes.ID,
		"ingest.nodes.text":       strings.Join(in.Nodes.Text, ", "),
		"ingest.nodes.strip_html": strconv.FormatBool(in.Nodes.StripHTML),
		"ingest.nodes.class":      in.Nodes.Class,
		"ingest.nodes.event_time": in.Nodes.EventTime,
		"ingest.nodes.edges":      in.Nodes.Edges,
		"ingest.edges.format":     in.Edges.Format,
		"ingest.edges.src":        in.Edges.Src,
		"ingest.edges.dst":        in.Edges.Dst,
		"ingest.edges.event_time": in.Edges.EventTime,
		"ingest.edges.mode":       in.Edges.Mode,
	}
	if topics.Mirror != "" {
		s["kafka.topics.mirror"] = topics.Mirror
	}
	return s
}
