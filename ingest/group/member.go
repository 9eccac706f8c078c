package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"giantstream/ingest/client"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// protocolType is that of consumers, so that Kafka's tools show the lag of the group.
	protocolType = "consumer"
	// answerTime is how long an answer may take that the coordinator need not wait for.
	answerTime = 5 * time.Second
)

// membership is this process's place in the group. It is used by one goroutine at a time.
//
// It keeps its id through everything but the coordinator's word that it has forgotten it (KIP-394). kafka-go's
// ConsumerGroup joins as a new member after each attempt that timed out, and leaves behind one that nobody is. The
// coordinator waits for that one in the next rebalance, in which the attempts of all others time out, and so on.
type membership struct {
	client *client.Client
	group  string
	topics []string
	// franz is for this member alone: a request that waits for a rebalance holds up all others on its connection.
	franz    *kgo.Client
	balancer *balancer
	session  time.Duration

	id         string         // "" until the coordinator has given one
	generation int32          // 0 until this id has been in one
	partitions map[string]int // of each topic, when the member joined
}

// rebalance is how long members have to stop their handlers and to join again.
func (m *membership) rebalance() time.Duration { return 3 * m.session }

// ask sends a request to the group's coordinator.
func (m *membership) ask(ctx context.Context, within time.Duration, req kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return m.franz.Request(ctx, req)
}

// refusal is the error in an answer, nil for none. A member that the coordinator does not know has no id.
func (m *membership) refusal(code int16) error {
	if code == 0 {
		return nil
	}
	err := kafka.Error(code)
	if errors.Is(err, kafka.UnknownMemberId) {
		m.id, m.generation = "", 0
	}
	return err
}

// join joins the group, or takes part in its rebalance, and returns the shards of this member.
func (m *membership) join(ctx context.Context) (shards []int, err error) {
	if m.partitions, err = m.countPartitions(ctx); err != nil {
		return nil, err
	}
	about := kmsg.NewConsumerMemberMetadata() // of version 0, which members of earlier releases read and write
	about.Topics, about.UserData = m.topics, m.balancer.userData()
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = m.balancer.name(), about.AppendTo(nil)
	for {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Group, req.MemberID, req.ProtocolType = m.group, m.id, protocolType
		req.SessionTimeoutMillis = int32(m.session.Milliseconds())
		req.RebalanceTimeoutMillis = int32(m.rebalance().Milliseconds())
		req.Protocols = []kmsg.JoinGroupRequestProtocol{protocol}
		answer, err := m.askAlive(ctx, req, kafka.UnknownMemberId)
		if err != nil {
			return nil, fmt.Errorf("join: %w", err)
		}
		res := answer.(*kmsg.JoinGroupResponse)
		err = m.refusal(res.ErrorCode)
		if errors.Is(err, kafka.MemberIDRequired) && res.MemberID != m.id {
			m.id = res.MemberID
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("join: %w", err)
		}
		m.id, m.generation = res.MemberID, res.Generation
		return m.sync(ctx, res)
	}
}

// sync gives the coordinator the shards of all members, if this one leads the group, and returns those of this one.
func (m *membership) sync(ctx context.Context, joined *kmsg.JoinGroupResponse) ([]int, error) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.Generation, req.MemberID = m.group, m.generation, m.id
	kind, name := protocolType, m.balancer.name()
	req.ProtocolType, req.Protocol = &kind, &name
	if joined.LeaderID == m.id {
		req.GroupAssignment = m.assign(joined.Members)
	}
	answer, err := m.askAlive(ctx, req, kafka.UnknownMemberId, kafka.IllegalGeneration, kafka.RebalanceInProgress)
	if err != nil {
		return nil, fmt.Errorf("get the shards of this member: %w", err)
	}
	res := answer.(*kmsg.SyncGroupResponse)
	if err := m.refusal(res.ErrorCode); err != nil {
		return nil, fmt.Errorf("get the shards of this member: %w", err)
	}
	if len(res.MemberAssignment) == 0 {
		return nil, nil
	}
	var mine kmsg.ConsumerMemberAssignment
	if err := mine.ReadFrom(res.MemberAssignment); err != nil {
		return nil, fmt.Errorf("decode the shards of this member: %w", err)
	}
	return assigned(&mine), nil
}

// askAlive sends a request that waits for other members, and heartbeats meanwhile, until one is answered with one of
// the errors in refused. A coordinator may remove a member that waits, or begin another rebalance, and leave the
// request without an answer. The embedded broker removes one that waits for longer than its session.
func (m *membership) askAlive(ctx context.Context, req kmsg.Request, refused ...kafka.Error) (kmsg.Response, error) {
	within := m.rebalance() + answerTime
	if m.generation == 0 {
		return m.ask(ctx, within, req) // a heartbeat that overtakes the request is one of an unknown member
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type reply struct {
		answer kmsg.Response
		err    error
	}
	replies := make(chan reply, 1)
	go func() {
		answer, err := m.ask(ctx, within, req)
		replies <- reply{answer, err}
	}()
	tick := time.NewTicker(m.session / 10)
	defer tick.Stop()
	for {
		select {
		case r := <-replies:
			return r.answer, r.err
		case <-tick.C:
		}
		var refusal kafka.Error
		if err := m.beat(ctx); errors.As(err, &refusal) && slices.Contains(refused, refusal) {
			return nil, err
		}
	}
}

// assign spreads the shards over the members.
func (m *membership) assign(members []kmsg.JoinGroupResponseMember) (out []kmsg.SyncGroupRequestGroupAssignment) {
	known := make(map[string][]byte, len(members))
	for _, other := range members {
		var about kmsg.ConsumerMemberMetadata
		_ = about.ReadFrom(other.ProtocolMetadata) // a member whose data cannot be read has had no shards
		known[other.MemberID] = about.UserData
	}
	for _, other := range spread(owners(known), shardsOf(m.partitions)) {
		a := kmsg.NewConsumerMemberAssignment()
		for _, topic := range m.topics {
			t := kmsg.NewConsumerMemberAssignmentTopic()
			t.Topic = topic
			for _, shard := range other.shards {
				t.Partitions = append(t.Partitions, int32(shard))
			}
			a.Topics = append(a.Topics, t)
		}
		one := kmsg.NewSyncGroupRequestGroupAssignment()
		one.MemberID, one.MemberAssignment = other.id, a.AppendTo(nil)
		out = append(out, one)
	}
	return out
}

// countPartitions counts the partitions of the topics.
func (m *membership) countPartitions(ctx context.Context) (map[string]int, error) {
	topics, err := m.client.Identify(ctx, m.topics...)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int, len(topics))
	for name, topic := range topics {
		counts[name] = topic.Partitions
	}
	return counts, nil
}

// beat tells the coordinator that this member lives.
func (m *membership) beat(ctx context.Context) error {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.Generation, req.MemberID = m.group, m.generation, m.id
	answer, err := m.ask(ctx, answerTime, req)
	if err != nil {
		return err
	}
	return m.refusal(answer.(*kmsg.HeartbeatResponse).ErrorCode)
}

// leave tells the coordinator that this member goes, so that its shards need not wait for its session to time out.
func (m *membership) leave(ctx context.Context) error {
	if m.id == "" {
		return nil
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.group, m.id
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID = m.id
	req.Members = []kmsg.LeaveGroupRequestMember{member}
	_, err := m.ask(ctx, answerTime, req)
	return err
}
