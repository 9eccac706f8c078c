// Package membership is what the consumer groups of a pipeline's processes agree on.
package membership

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/ingest/group"
)

// Membership is in the groups of a pipeline.
type Membership struct {
	Client *client.Client
	// Pipeline is its id, Group the name of the group that streams. The names of other groups begin with it.
	Pipeline, Group string
	// Published is what members with role embed publish, and where.
	Published      string
	SessionTimeout time.Duration
}

// Session is how long a member may be silent.
func (m Membership) Session() time.Duration {
	return cmp.Or(m.SessionTimeout, group.DefaultSessionTimeout)
}

// Protocol returns the name of the consumer groups' protocol. Kafka refuses a member that does not share a protocol
// with the others. The pipeline's id is part of it, because another pipeline that has the same group would get some of
// the shards, and this one would not commit them. A worker with roles stream and embed publishes the embeddings of the
// shards that it streams. A shard that moved to a worker without role embed would go unpublished, so either all members
// of a group have that role or none has. Those that have it publish the same to the same topics, or each topic would
// have some of the shards.
func (m Membership) Protocol(embeds bool) string {
	name := group.ProtocolName + "-" + m.Pipeline
	if embeds {
		sum := sha256.Sum256([]byte(m.Published))
		return name + "-" + hex.EncodeToString(sum[:4])
	}
	return name + "-stream"
}

// Explain adds to a group's error what its members disagree about.
func (m Membership) Explain(ctx context.Context, name string, err error) error {
	if !errors.Is(err, kafka.InconsistentGroupProtocol) {
		return err
	}
	if protocol, derr := m.Client.GroupProtocol(ctx, name); derr == nil {
		id, ours := strings.CutPrefix(protocol, group.ProtocolName+"-")
		if id, _, _ = strings.Cut(id, "-"); ours && id != m.Pipeline {
			return fmt.Errorf("kafka group %q belongs to another pipeline (its id is %s, this store is of %s). Two "+
				"pipelines need groups of their own (pipeline, or kafka.group), two workers of one pipeline the same "+
				"store: %w", name, id, m.Pipeline, err)
		}
	}
	return fmt.Errorf("%w: the workers of a group are of one pipeline (here %s) and one version, have role embed all "+
		"or none of them, and the same kafka.topics.embeddings, sink.canary_topic, sink.embedding_type, "+
		"sink.embedding_dim and sinks.attributes (here %s). Stop those that differ", err, m.Pipeline, m.Published)
}
