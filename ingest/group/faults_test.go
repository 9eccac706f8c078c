package group_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/group"
	"giantstream/ingest/internal/kafkatest"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// faultShards is how many shards the members of a sequence share.
const faultShards = 6

// Whatever sequence of kills and freezes its members have been through, and however long each lasted, the group forms
// again: each shard has one living member within the time that the protocol takes, which is a session, for members that
// died without a word, and a rebalance, for those that died while they joined.
//
// GIANTSTREAM_SEED is the first seed, GIANTSTREAM_GROUP_RUNS how many there are, GIANTSTREAM_GROUP_SESSION the
// session's timeout.
func TestGroupFormsAgain(t *testing.T) {
	if os.Getenv("GIANTSTREAM_TEST_MEMBER") != "" {
		beFaultMember(t)
		return
	}
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	allowShortSessions(t, b.Addrs())
	runSequences(t, b.Addrs(), 500*time.Millisecond, 16)
}

// allowShortSessions lets members of groups have sessions of 100 ms.
func allowShortSessions(t *testing.T, brokers []string) {
	c, err := client.New(client.Options{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	franz, err := c.Franz()
	if err != nil {
		t.Fatal(err)
	}
	defer franz.Close()
	err = client.Configure(t.Context(), franz, kmsg.ConfigResourceTypeBroker, "",
		map[string]string{"group.min.session.timeout.ms": "100"})
	if err != nil {
		t.Fatal(err)
	}
}

// The same on Apache Kafka.
func TestRealGroupFormsAgain(t *testing.T) {
	if os.Getenv("GIANTSTREAM_TEST_MEMBER") != "" {
		beFaultMember(t)
		return
	}
	kafkatest.StartReal(t, 1)
	runSequences(t, kafkatest.Brokers(), 6*time.Second, 1)
}

func runSequences(t *testing.T, brokers []string, session time.Duration, runs int) {
	seed, _ := strconv.ParseUint(cmp.Or(os.Getenv("GIANTSTREAM_SEED"), "1"), 10, 64)
	if n, err := strconv.Atoi(os.Getenv("GIANTSTREAM_GROUP_RUNS")); err == nil {
		runs = n
	}
	if d, err := time.ParseDuration(os.Getenv("GIANTSTREAM_GROUP_SESSION")); err == nil {
		session = d
	}
	var mu sync.Mutex
	var took []time.Duration
	t.Run("sequences", func(t *testing.T) {
		for s := range uint64(runs) {
			t.Run(fmt.Sprintf("seed=%d", seed+s), func(t *testing.T) {
				t.Parallel() // they wait most of the time
				after := runSequence(t, brokers, session, seed+s)
				mu.Lock()
				defer mu.Unlock()
				took = append(took, after)
			})
		}
	})
	if slices.Sort(took); len(took) > 0 {
		t.Logf("sessions of %v: the group has formed again after %v (median), %v (maximum)", session, took[len(took)/2],
			took[len(took)-1])
	}
}

// runSequence returns how long the group took to form again after the last fault.
func runSequence(t *testing.T, brokers []string, session time.Duration, seed uint64) time.Duration {
	random := rand.New(rand.NewPCG(seed, 6))
	c, err := client.New(client.Options{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	name := fmt.Sprintf("group-%d-%d", os.Getpid(), seed)
	if err := c.EnsureTopics(t.Context(), client.TopicSpec{Name: name, Partitions: faultShards}); err != nil {
		t.Fatal(err)
	}
	members := make([]*faultMember, 2+random.IntN(4))
	for i := range members {
		members[i] = &faultMember{brokers: brokers, name: name, session: session}
		members[i].start(t)
	}
	pause := func() { // often within a rebalance
		longest := []time.Duration{session / 10, session, 3 * session}[random.IntN(3)]
		time.Sleep(time.Duration(random.Int64N(int64(longest))))
	}
	for range 3 + random.IntN(8) {
		m := members[random.IntN(len(members))]
		switch random.IntN(3) {
		case 0:
			m.kill()
			if random.IntN(2) == 0 {
				pause()
			}
			m.start(t)
		case 1:
			m.freeze(t)
		default:
			m.thaw(t)
		}
		pause()
	}
	for _, m := range members {
		m.thaw(t)
	}
	healed := time.Now()
	// A member that died while it joined is waited for a rebalance (three sessions) and a session. An attempt to join
	// whose answer does not come is given up after a rebalance and five seconds. Twice both are too long.
	deadline := healed.Add(2 * (4*session + 5*time.Second))
	since := healed // when the members began to agree
	for {
		if !settled(members) {
			since = time.Now()
		}
		// A member that was frozen says for a while what it had: so they must agree for a session.
		if time.Since(since) > session {
			return since.Sub(healed)
		}
		if time.Now().After(deadline) {
			for i, m := range members {
				t.Logf("member %d has %v", i, m.shards())
			}
			t.Fatalf("after %v the group has not formed again", time.Since(healed))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// settled reports whether each shard has one member that says that it has it.
func settled(members []*faultMember) bool {
	var all []string
	for _, m := range members {
		all = append(all, m.shards()...)
	}
	slices.Sort(all)
	return len(all) == faultShards && len(slices.Compact(all)) == faultShards
}

// faultMember is a process that is a member of a group, and says on its standard output which shards it has.
type faultMember struct {
	brokers []string
	name    string
	session time.Duration

	cmd  *exec.Cmd
	said chan struct{} // closed when all of the output is read
	mu   sync.Mutex
	has  []string
}

func (m *faultMember) start(t *testing.T) {
	t.Helper()
	m.cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGroupFormsAgain$")
	m.cmd.Env = append(os.Environ(), "GIANTSTREAM_TEST_MEMBER="+m.name, "GIANTSTREAM_TEST_SESSION="+m.session.String(),
		"GIANTSTREAM_TEST_BROKERS="+strings.Join(m.brokers, ","))
	out, err := m.cmd.StdoutPipe()
	if err == nil {
		err = m.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan struct{})
	m.said = said
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if shards, ok := strings.CutPrefix(lines.Text(), "has "); ok {
				m.set(strings.Fields(shards))
			}
		}
		m.set(nil)
	}()
	cmd := m.cmd
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			<-said
			_ = cmd.Wait() // killed
		}
	})
}

func (m *faultMember) kill() {
	_ = m.cmd.Process.Kill()
	<-m.said
	_ = m.cmd.Wait() // killed
}

func (m *faultMember) freeze(t *testing.T) { m.signal(t, syscall.SIGSTOP) }
func (m *faultMember) thaw(t *testing.T)   { m.signal(t, syscall.SIGCONT) }

func (m *faultMember) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (m *faultMember) set(shards []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.has = shards
}

func (m *faultMember) shards() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.has
}

// beFaultMember is the process of a faultMember.
func beFaultMember(t *testing.T) {
	session, err := time.ParseDuration(os.Getenv("GIANTSTREAM_TEST_SESSION"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Brokers: strings.Split(os.Getenv("GIANTSTREAM_TEST_BROKERS"), ",")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	name := os.Getenv("GIANTSTREAM_TEST_MEMBER")
	var mu sync.Mutex
	has := map[int]bool{}
	say := func(shard int, now bool) {
		mu.Lock()
		defer mu.Unlock()
		if has[shard] = now; !now {
			delete(has, shard)
		}
		line := "has"
		for s := range faultShards {
			if has[s] {
				line += fmt.Sprintf(" %d", s)
			}
		}
		fmt.Println(line + " ")
	}
	err = group.Run(t.Context(), group.Options{Client: c, Group: name, Topics: []string{name}, SessionTimeout: session,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}, func(ctx context.Context, a group.Assignment) error {
		say(a.Shard, true)
		<-ctx.Done()
		say(a.Shard, false)
		return ctx.Err()
	})
	if !errors.Is(err, kafka.GroupCoordinatorNotAvailable) {
		t.Fatal(err)
	}
}
