package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"giantstream/ingest/broker"
	"giantstream/ingest/client"
)

// A member that dies while it waits in a rebalance is removed, although the others go on with it.
func TestMemberThatDiesInARebalanceIsRemoved(t *testing.T) {
	b, c := start(t, t.TempDir())
	t.Cleanup(func() {
		c.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	franz, err := c.Franz()
	if err != nil {
		t.Fatal(err)
	}
	defer franz.Close()
	if err := client.Configure(t.Context(), franz, kmsg.ConfigResourceTypeBroker, "",
		map[string]string{"group.min.session.timeout.ms": "100"}); err != nil {
		t.Fatal(err)
	}
	// The broker's code chooses by chance whether it takes the dead member for one that it has answered.
	t.Run("groups", func(t *testing.T) {
		for _, group := range []string{"a", "b", "c", "d"} {
			t.Run(group, func(t *testing.T) {
				t.Parallel()
				dieInRebalance(t, b, group)
			})
		}
	})
}

func dieInRebalance(t *testing.T, b *broker.Broker, group string) {
	stays, dies := newGroupMember(t, b, group), newGroupMember(t, b, group)
	stays.join(t)
	stays.join(t)
	stays.sync(t)

	dies.join(t) // gets an id
	parked := make(chan struct{})
	go func() {
		defer close(parked)
		_, _ = dies.request().RequestWith(t.Context(), dies.client) // no answer comes
	}()
	stays.beatUntilRebalance(t)
	dies.client.Close()
	<-parked
	// The broker is to have noticed that the connection is gone: it would give a session to a member that it can answer.
	// It shows nobody its connections, so there is nothing to wait for. Without the pause the test asks less, and passes.
	time.Sleep(500 * time.Millisecond)
	stays.join(t)
	stays.sync(t)
	if n := stays.members(t); n != 2 {
		t.Fatalf("%d members: the one that died was to be in the group", n)
	}
	stays.beatUntilRebalance(t) // without it
	if n := stays.members(t); n != 1 {
		t.Errorf("%d members, 1 is alive", n)
	}
}

// groupMember asks what a member of a group does.
type groupMember struct {
	client     *kgo.Client
	group, id  string
	generation int32
}

func newGroupMember(t *testing.T, b *broker.Broker, group string) *groupMember {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.RequestRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &groupMember{client: client, group: group}
}

func (m *groupMember) request() *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = m.group, m.id, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 1000, 3000
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "p"
	req.Protocols = append(req.Protocols, protocol)
	return req
}

func (m *groupMember) join(t *testing.T) {
	t.Helper()
	res, err := m.request().RequestWith(t.Context(), m.client)
	if err != nil {
		t.Fatal(err)
	}
	m.id, m.generation = res.MemberID, res.Generation
}

func (m *groupMember) sync(t *testing.T) {
	t.Helper()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.Generation, req.MemberID = m.group, m.generation, m.id
	res, err := req.RequestWith(t.Context(), m.client)
	if err != nil || res.ErrorCode != 0 {
		t.Fatal(err, res)
	}
}

// beatUntilRebalance sends heartbeats until the group is to form again.
func (m *groupMember) beatUntilRebalance(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.Generation, req.MemberID = m.group, m.generation, m.id
		res, err := req.RequestWith(ctx, m.client)
		if err != nil {
			t.Fatal(err)
		}
		if res.ErrorCode != 0 {
			return
		}
	}
}

func (m *groupMember) members(t *testing.T) int {
	t.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{m.group}
	res, err := req.RequestWith(t.Context(), m.client)
	if err != nil || len(res.Groups) != 1 {
		t.Fatal(err, res)
	}
	return len(res.Groups[0].Members)
}
