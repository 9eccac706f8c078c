package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"golang.org/x/sync/errgroup"

	"giantstream/ingest/group"
)

// Roles are the parts of the work that a process does. Processes of a pipeline share nothing but
// Kafka and the store, so each role can have its own kind and number of machines.
type Roles struct {
	// Stream consumes the topics, keeps the graph of the shards that the group gives to this
	// process, and commits their windows.
	Stream bool
	// Refresh builds generations, in whichever process has the lease.
	Refresh bool
	// Embed publishes embeddings: of the shards that the process streams or, without that role, of
	// those that a second group gives to it.
	Embed bool
	// Build does tasks of staged builds that another process hands out (package taskqueue).
	Build bool
	// Serve answers over HTTP which nodes are similar, from all shards' embeddings in memory.
	Serve bool
}

// AllRoles is a process that keeps the pipeline going by itself. What it holds in memory does not grow with the
// catalog, as the index of Serve does, so that role is asked for by name.
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
		case "build":
			r.Build = true
		case "serve":
			r.Serve = true
		default:
			return Roles{}, fmt.Errorf(
				"%q is no role: use stream, refresh, embed, build and serve, separated by commas", name)
		}
	}
	return r, nil
}

// Whole reports whether a process with these roles needs no other.
func (r Roles) Whole() bool { return r.Stream && r.Refresh && r.Embed }

// String is a list that ParseRoles reads.
func (r Roles) String() string {
	var names []string
	for _, n := range []struct {
		name string
		has  bool
	}{{"stream", r.Stream}, {"refresh", r.Refresh}, {"embed", r.Embed}, {"build", r.Build}, {"serve", r.Serve}} {
		if n.has {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}

// protocol returns the name of the consumer group's protocol in a pipeline. Kafka refuses a member
// that does not share a protocol with the others. The pipeline's id is part of it, because another
// pipeline that has the same group would get some of the shards, and this one would not commit
// them. A worker with roles stream and embed publishes the embeddings of the shards that it streams.
// A shard that moved to a worker without role embed would go unpublished, so either all members of
// a group have that role or none has.
func (r Roles) protocol(pipeline string) string {
	name := group.ProtocolName + "-" + pipeline
	if r.Embed {
		return name
	}
	return name + "-stream"
}

// explainGroup adds to a group's error what its members disagree about.
func (s *Service) explainGroup(ctx context.Context, name string, err error) error {
	if !errors.Is(err, kafka.InconsistentGroupProtocol) {
		return err
	}
	if protocol, derr := s.client.GroupProtocol(ctx, name); derr == nil {
		id, ours := strings.CutPrefix(protocol, group.ProtocolName+"-")
		if id, _, _ = strings.Cut(id, "-"); ours && id != s.id.ID {
			return fmt.Errorf("kafka group %q belongs to another pipeline, whose id is %s: "+
				"this store is of pipeline %s. Two pipelines need groups of their own (pipeline, or kafka.group); "+
				"two workers of one pipeline need the same store: %w", name, id, s.id.ID, err)
		}
	}
	return fmt.Errorf("%w: the workers of a group have the same version, and with role stream "+
		"either all or none of them have role embed; stop those that differ", err)
}

const (
	// embedGroup is added to the group's name for workers that embed without streaming.
	embedGroup = "-embed"
	// pollBeside is the interval at which a follower looks for manifests in the process that
	// streams the shard, which wakes it for each; pollAlone, in another process, which is not
	// woken.
	pollBeside = 5 * time.Second
	pollAlone  = 500 * time.Millisecond
)

// embed joins the second group and runs a follower for each shard that the group assigns. The
// group's partitions are those of the nodes topic; none of its records are read.
func (s *Service) embed(ctx context.Context) error {
	err := group.Run(ctx, group.Options{
		Client: s.client, Group: s.cfg.Group() + embedGroup, Protocol: AllRoles().protocol(s.id.ID),
		Topics: []string{s.topics.Nodes}, Log: s.log,
		SessionTimeout: s.cfg.Kafka.SessionTimeout,
	}, func(ctx context.Context, a group.Assignment) error {
		g, ctx := errgroup.WithContext(ctx)
		for _, o := range s.outlets() {
			g.Go(func() error { return s.follow(ctx, a.Shard, &o, nil) })
		}
		return g.Wait()
	})
	return s.explainGroup(ctx, s.cfg.Group()+embedGroup, err)
}
