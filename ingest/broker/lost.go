package broker

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lostMembers removes members of consumer groups that have died while they waited in a rebalance. kfake starts the
// timer of a member's session when it answers the member. It has nobody to answer then, and keeps the member, with the
// partitions that the leader gives it, until the next rebalance: in a group that nothing disturbs, for ever.
//
// A living member is heard at least once in a session and a rebalance: it waits at most a rebalance for the others,
// then asks for its partitions, or sends heartbeats.
type lostMembers struct {
	client *kgo.Client
	stop   context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex
	heard map[memberKey]hearing
}

// memberKey is a member of a group.
type memberKey struct{ group, member string }

// hearing is when a member was last heard, and for how long it may be silent.
type hearing struct {
	at      time.Time
	silence time.Duration
}

// shortestSilence bounds how often the members are looked through.
const shortestSilence = time.Second

func watchMembers(cluster *kfake.Cluster) (*lostMembers, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &lostMembers{client: client, stop: stop, ended: make(chan struct{}), heard: map[memberKey]hearing{}}
	for _, key := range []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup} {
		cluster.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
			l.hear(req, time.Now())
			return nil, nil, false
		})
	}
	go l.run(ctx)
	return l, nil
}

func (l *lostMembers) close() {
	l.stop()
	<-l.ended
	l.client.Close()
}

// hear notes a request of a member.
func (l *lostMembers) hear(req kmsg.Request, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r := req.(type) {
	case *kmsg.JoinGroupRequest:
		if r.MemberID != "" { // the broker gives it one, and it asks again
			silence := time.Duration(r.SessionTimeoutMillis+r.RebalanceTimeoutMillis) * time.Millisecond
			l.heard[memberKey{r.Group, r.MemberID}] = hearing{now, max(silence, shortestSilence)}
		}
	case *kmsg.SyncGroupRequest:
		l.refresh(memberKey{r.Group, r.MemberID}, now)
	case *kmsg.HeartbeatRequest:
		l.refresh(memberKey{r.Group, r.MemberID}, now)
	case *kmsg.LeaveGroupRequest:
		delete(l.heard, memberKey{r.Group, r.MemberID})
		for _, m := range r.Members {
			delete(l.heard, memberKey{r.Group, m.MemberID})
		}
	}
}

func (l *lostMembers) refresh(key memberKey, now time.Time) {
	if h, ok := l.heard[key]; ok {
		l.heard[key] = hearing{now, h.silence}
	}
}

func (l *lostMembers) run(ctx context.Context) {
	defer close(l.ended)
	tick := time.NewTicker(shortestSilence / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, lost := range l.silent(time.Now()) {
			req := kmsg.NewPtrLeaveGroupRequest()
			req.Group, req.MemberID = lost.group, lost.member
			member := kmsg.NewLeaveGroupRequestMember()
			member.MemberID = lost.member
			req.Members = []kmsg.LeaveGroupRequestMember{member}
			// A broker that is about to close need not remove it. Most have been removed with their session.
			_, _ = req.RequestWith(ctx, l.client)
		}
	}
}

// silent returns the members that have been silent for too long, and forgets them.
func (l *lostMembers) silent(now time.Time) (lost []memberKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, h := range l.heard {
		if now.Sub(h.at) > h.silence {
			lost = append(lost, key)
			delete(l.heard, key)
		}
	}
	return lost
}
