package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/group"
)

// Roles are the parts of the work that a process takes on. Processes of one
// pipeline share nothing but Kafka and the store, so each role can have
// machines of its own kind and number.
type Roles struct {
	// Stream consumes the topics, keeps the graph of the shards that the
	// group gives to this process, and commits their windows.
	Stream bool
	// Refresh builds generations, in whichever process has the lease.
	Refresh bool
	// Embed publishes embeddings: of the shards that the process streams or,
	// without that role, of those that a second group gives to it.
	Embed bool
}

// AllRoles is a process that does everything.
func AllRoles() Roles { return Roles{Stream: true, Refresh: true, Embed: true} }

// ParseRoles reads a list such as "stream,embed".
func ParseRoles(list string) (Roles, error) {
	var r Roles
	for name := range strings.SplitSeq(list, ",") {
		switch strings.TrimSpace(name) {
		case "stream":
			r.Stream = true
		case "refresh":
			r.Refresh = true
		case "embed":
			r.Embed = true
		default:
			return Roles{}, fmt.Errorf("%q is no role: use stream, refresh and embed, separated by commas", name)
		}
	}
	return r, nil
}

// String is a list that ParseRoles reads.
func (r Roles) String() string {
	var names []string
	for _, n := range []struct {
		name string
		has  bool
	}{{"stream", r.Stream}, {"refresh", r.Refresh}, {"embed", r.Embed}} {
		if n.has {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}

// protocol of the consumer group. A worker that streams follows its own shards
// if it embeds at all; so either all of a group do, or none, lest shards go
// unpublished when they move. Kafka makes the members of a group agree on a
// protocol, which is how one that differs is kept out.
func (r Roles) protocol() string {
	if r.Embed {
		return group.ProtocolName
	}
	return group.ProtocolName + "-stream"
}

// explainGroup tells which settings two members of a group disagree about.
func explainGroup(err error) error {
	if errors.Is(err, kafka.InconsistentGroupProtocol) {
		return fmt.Errorf("%w: the workers of a group have the same version, and with role stream either all or none of them have role embed; stop those that differ", err)
	}
	return err
}

const (
	// embedGroup is added to the group's name for workers that embed without streaming.
	embedGroup = "-embed"
	// pollBeside is how often a follower looks for what it was not woken for,
	// beside the worker of its shard; pollAlone, in another process than that one.
	pollBeside = 5 * time.Second
	pollAlone  = 500 * time.Millisecond
)

// embed is the membership of the second group: a follower per assigned shard.
// The shards are partitions of the nodes topic there, of which nothing is read.
func (s *Service) embed(ctx context.Context) error {
	err := group.Run(ctx, group.Options{
		Client: s.client, Group: s.cfg.Group() + embedGroup, Topics: []string{s.topics.Nodes}, Log: s.log,
		SessionTimeout: s.cfg.Kafka.SessionTimeout,
	}, func(ctx context.Context, a group.Assignment) error { return s.follow(ctx, a.Shard) })
	return explainGroup(err)
}
