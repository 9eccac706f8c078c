package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/internal/retry"
)

// ErrForeign: the topic belongs to another pipeline.
const ErrForeign = retry.FinalError("belongs to another pipeline")

// claimFormat is the version of claims.
const claimFormat = 1

// LogOf returns the name of the topic with the claims to a topic.
func LogOf(topic string) string { return topic + ".owner" }

// Pipeline is who claims.
type Pipeline struct {
	Name, ID string
	// Continues is the id of the pipeline that this one is with another number of shards or another mapping, "" for
	// none.
	Continues string
	// Groups are its consumer groups. As long as one of them has members, the pipeline runs.
	Groups []string
}

// String names the pipeline for people.
func (p Pipeline) String() string { return fmt.Sprintf("%s (id %s)", p.Name, p.ID) }

// Claim is a record of the log.
type Claim struct {
	Format int `json:"format"`
	// TopicID is the id of the topic that is claimed, "" where brokers give none.
	TopicID string `json:"topic_id"`
	Number  int64  `json:"number"`
	// Name and ID are those of the pipeline, and Groups are its consumer groups.
	Name   string   `json:"name"`
	ID     string   `json:"id"`
	Groups []string `json:"groups"`
	// From is the id of the owner before, "" for none. Continues: it is the same pipeline, with another number of
	// shards.
	From      string    `json:"from,omitempty"`
	Continues bool      `json:"continues,omitempty"`
	At        time.Time `json:"at"`
}

// Pipeline returns who has claimed.
func (c *Claim) Pipeline() Pipeline { return Pipeline{Name: c.Name, ID: c.ID, Groups: c.Groups} }

// Owner is who owns a topic at a moment.
type Owner struct {
	Claim
	// Before are the ids of earlier owners that this one continues, the latest first.
	Before []string
	// end is where the log ends that this was read from.
	end int64
}

// Load returns the owner of a topic with an id, nil if there is none.
func Load(ctx context.Context, c *client.Client, topic, topicID string) (*Owner, error) {
	_, err := c.Identify(ctx, LogOf(topic))
	if errors.Is(err, client.ErrNoTopic) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o, _, err := load(ctx, c, topic, topicID)
	return o, err
}

// load also returns where the log ends.
func load(ctx context.Context, c *client.Client, topic, topicID string) (owner *Owner, end int64, err error) {
	log := LogOf(topic)
	ends, err := c.EndOffsets(ctx, log)
	if err != nil {
		return nil, 0, err
	}
	end = ends[log][0]
	var claims []Claim
	for m, err := range c.Range(ctx, log, 0, 0, end) {
		if err != nil {
			return nil, 0, err
		}
		var claim Claim
		if err := json.Unmarshal(m.Value, &claim); err != nil || claim.Format != claimFormat || claim.ID == "" {
			return nil, 0, fmt.Errorf("kafka topic %q, offset %d: no claim of format %d: another program, or a later "+
				"release of this one, has written it", log, m.Offset, claimFormat)
		}
		if claim.TopicID == topicID {
			claims = append(claims, claim)
		}
	}
	if owner = ownerBy(claims); owner != nil {
		owner.end = end
	}
	return owner, end, nil
}

// ownerBy returns the owner by the claims to one topic, which are in the order of the log; nil for none.
func ownerBy(claims []Claim) *Owner {
	// held are the claims of each number that hold, or have held.
	held := map[int64]*Claim{}
	var newest int64
	for i := range claims {
		c := &claims[i]
		if held[c.Number] == nil {
			held[c.Number] = c
		}
		newest = max(newest, c.Number)
	}
	if newest == 0 {
		return nil
	}
	o := &Owner{Claim: *held[newest]}
	for c := held[newest]; c != nil && c.Continues; c = held[c.Number-1] {
		o.Before = append(o.Before, c.From)
	}
	return o
}

// Ensure makes a pipeline the owner of a topic that has none, or that belonged to the pipeline which it continues, and
// returns the claim that holds. claimed says that it was written by this call. ErrForeign if the topic belongs to
// another pipeline; Owner says to which. The topic exists.
func Ensure(ctx context.Context, c *client.Client, topic string, mine Pipeline) (o *Owner, claimed bool, err error) {
	log, err := openLog(ctx, c, topic)
	if err != nil {
		return nil, false, err
	}
	for {
		if o, err = log.owner(ctx); err != nil {
			return nil, false, err
		}
		switch {
		case o == nil:
			err = log.append(ctx, mine, nil)
		case o.ID == mine.ID:
			return o, claimed, nil
		case o.ID == mine.Continues && !claimed:
			err = log.append(ctx, mine, o)
		default:
			return o, false, fmt.Errorf("kafka topic %q %w: %s. This store is of pipeline %s. Give each topics of "+
				"its own (pipeline, kafka.topics, sink.canary_topic); or stop the other one and take the topic: "+
				"'giantstream claim --from %s'",
				topic, ErrForeign, o.Pipeline(), mine, o.ID)
		}
		if err != nil {
			return nil, false, err
		}
		claimed = true
	}
}

// ErrBusy: the owner of a topic runs.
var ErrBusy = errors.New("the pipeline that the topic belongs to is not stopped")

// Take makes a pipeline the owner of a topic that belongs to the pipeline with the id from, or to none. ErrBusy if that
// one runs, ErrForeign if the topic belongs to a third one. It may be repeated.
func Take(ctx context.Context, c *client.Client, topic string, mine Pipeline, from string) error {
	log, err := openLog(ctx, c, topic)
	if err != nil {
		return err
	}
	o, err := log.owner(ctx)
	switch {
	case err != nil:
		return err
	case o == nil:
	case o.ID == mine.ID:
		return nil
	case o.ID != from:
		return fmt.Errorf("kafka topic %q %w: %s, not %s", topic, ErrForeign, o.Pipeline(), from)
	}
	if o != nil {
		if err := o.checkStopped(ctx, c); err != nil {
			return fmt.Errorf("kafka topic %q: %w", topic, err)
		}
	}
	if err := log.append(ctx, mine, o); err != nil {
		return err
	}
	if o, err = log.owner(ctx); err != nil {
		return err
	}
	if o == nil || o.ID != mine.ID {
		return fmt.Errorf("kafka topic %q %w: another one has taken it at the same time", topic, ErrForeign)
	}
	return nil
}

// checkStopped returns ErrBusy if a worker of the pipeline that has claimed is in one of its groups.
func (c *Claim) checkStopped(ctx context.Context, brokers *client.Client) error {
	for _, group := range c.Groups {
		members, err := brokers.Members(ctx, group)
		if err != nil {
			return err
		}
		if members > 0 {
			return fmt.Errorf("%w: %s, whose kafka group %q has %d members. Stop all its workers; one that was killed "+
				"leaves the group after kafka.session_timeout", ErrBusy, c.Pipeline(), group, members)
		}
	}
	return nil
}

// claimLog is the log of claims to a topic.
type claimLog struct {
	client         *client.Client
	topic, topicID string
}

// openLog creates the log of claims unless it exists.
func openLog(ctx context.Context, c *client.Client, topic string) (claimLog, error) {
	ids, err := c.Identify(ctx, topic)
	if err == nil {
		err = c.EnsureTopics(ctx, client.TopicSpec{Name: LogOf(topic), Partitions: 1, Compacted: true})
	}
	if err != nil {
		return claimLog{}, fmt.Errorf("claim kafka topic %q: %w", topic, err)
	}
	// Without the right to describe it, it is taken for what it is created as; the start warns of that right.
	if s, err := c.Settings(ctx, LogOf(topic)); err == nil && !s[LogOf(topic)].Keeps() {
		return claimLog{}, fmt.Errorf("kafka topic %q deletes its records, and would forget which pipeline owns %q: "+
			"set cleanup.policy=compact", LogOf(topic), topic)
	}
	return claimLog{c, topic, ids[topic].ID}, nil
}

func (l claimLog) owner(ctx context.Context) (*Owner, error) {
	o, _, err := load(ctx, l.client, l.topic, l.topicID)
	if err != nil {
		return nil, fmt.Errorf("read the owner of kafka topic %q: %w", l.topic, err)
	}
	return o, nil
}

// append writes the claim of the owner after before, which is nil for none. Whether it holds, the log says.
func (l claimLog) append(ctx context.Context, mine Pipeline, before *Owner) error {
	claim := Claim{Format: claimFormat, TopicID: l.topicID, Number: 1, Name: mine.Name, ID: mine.ID,
		Groups: mine.Groups, At: time.Now().UTC()}
	if before != nil {
		claim.Number, claim.From = before.Number+1, before.ID
		claim.Continues = before.ID == mine.Continues
	}
	value, err := json.Marshal(claim)
	if err != nil {
		return fmt.Errorf("encode a claim to kafka topic %q: %w", l.topic, err)
	}
	p := l.client.NewProducer()
	err = p.Write(ctx, kafka.Message{Topic: LogOf(l.topic), Key: []byte(mine.ID), Value: value})
	if err = errors.Join(err, p.Close()); err != nil {
		return fmt.Errorf("claim kafka topic %q: %w", l.topic, err)
	}
	return nil
}
