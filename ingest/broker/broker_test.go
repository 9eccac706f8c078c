package broker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/broker"
	"giantstream/ingest/client"

	"github.com/segmentio/kafka-go"
)

func start(t *testing.T, dir string) (*broker.Broker, *client.Client) {
	t.Helper()
	b, err := broker.Start(broker.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	return b, c
}

func record(i int) kafka.Message {
	return kafka.Message{Topic: "nodes", Key: []byte(strconv.Itoa(i)), Value: []byte("v" + strconv.Itoa(i))}
}

func TestReopenKeepsRecords(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	const n = 2000
	for round := range 3 {
		b, c := start(t, dir)
		if err := c.EnsureTopics(ctx, client.TopicSpec{Name: "nodes", Partitions: 3},
			client.TopicSpec{Name: "vectors", Partitions: 2, Compacted: true}); err != nil {
			t.Fatal(err)
		}
		p := c.NewProducer()
		for i := range n {
			if err := p.Send(ctx, record(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if got := total(ctx, t, c); got != int64(n*(round+1)) {
			t.Errorf("round %d: %d records, want %d", round, got, n*(round+1))
		}
		if err := errors.Join(p.Close(), b.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func total(ctx context.Context, t *testing.T, c *client.Client) int64 {
	t.Helper()
	end, err := c.EndOffsets(ctx, "nodes")
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	for _, e := range end["nodes"] {
		n += e
	}
	return n
}

func TestSecondBrokerOnOneDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	b, _ := start(t, dir)
	defer b.Close()
	if _, err := broker.Start(broker.Options{Dir: dir}); !errors.Is(err, broker.ErrLocked) {
		t.Errorf("second start: %v, want ErrLocked", err)
	}
}

// A lock that cannot be opened, as in a store that is read-only, is no other process that has it.
func TestDirectoryThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "LOCK"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := broker.Start(broker.Options{Dir: dir})
	if err == nil || errors.Is(err, broker.ErrLocked) || !strings.Contains(err.Error(), "make the directory writable") {
		t.Errorf("%v", err)
	}
}

// TestKill starts this test binary as a child that runs a broker and reports acknowledged records,
// kills it while it writes, and looks for them.
func TestKill(t *testing.T) {
	if dir := os.Getenv("GIANTSTREAM_TEST_BROKER_DIR"); dir != "" {
		runUntilKilled(t, dir)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	acked := 0
	for round := range 4 {
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKill$", "-test.v")
		cmd.Env = append(os.Environ(), "GIANTSTREAM_TEST_BROKER_DIR="+dir,
			fmt.Sprintf("GIANTSTREAM_TEST_FROM=%d", acked))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		reports := 0
		for s := bufio.NewScanner(out); s.Scan(); {
			if n, ok := strings.CutPrefix(s.Text(), "acked "); ok {
				acked, _ = strconv.Atoi(n)
				if reports++; reports == 3+5*round {
					if err := cmd.Process.Kill(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		_ = cmd.Wait() // killed
		if reports < 3+5*round {
			t.Fatalf("round %d: the child stopped by itself after %d reports", round, reports)
		}
		checkAcked(ctx, t, dir, acked)
	}
}

// runUntilKilled writes records 0, 1, 2, … and prints how many are acknowledged.
func runUntilKilled(t *testing.T, dir string) {
	ctx := t.Context()
	_, c := start(t, dir)
	if err := c.EnsureTopics(ctx, client.TopicSpec{Name: "nodes", Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	p := c.NewProducer()
	from, _ := strconv.Atoi(os.Getenv("GIANTSTREAM_TEST_FROM"))
	for i := from; ; i++ {
		if err := p.Send(ctx, record(i)); err != nil {
			t.Fatal(err)
		}
		if i%500 == 499 {
			if err := p.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			fmt.Printf("acked %d\n", i+1)
		}
	}
}

func checkAcked(ctx context.Context, t *testing.T, dir string, acked int) {
	t.Helper()
	b, c := start(t, dir)
	defer b.Close()
	end, err := c.EndOffsets(ctx, "nodes")
	if err != nil {
		t.Fatal(err)
	}
	seen := make([]bool, acked)
	for p, e := range end["nodes"] {
		for m, err := range c.Range(ctx, "nodes", p, 0, e) {
			if err != nil {
				t.Fatal(err)
			}
			i, err := strconv.Atoi(string(m.Key))
			if err != nil || string(m.Value) != "v"+string(m.Key) {
				t.Fatalf("record %d-%d is %q: %q", p, m.Offset, m.Key, m.Value)
			}
			if i < acked {
				seen[i] = true
			}
		}
	}
	for i, ok := range seen {
		if !ok {
			t.Fatalf("record %d of %d acknowledged ones is lost", i, acked)
		}
	}
}

// TestAFullDiskIsNamed: the broker's own answer to a write that does not fit names no cause.
func TestAFullDiskIsNamed(t *testing.T) {
	free := uint64(1 << 40)
	o := broker.Options{Dir: t.TempDir(), Free: func(string) (uint64, error) { return free, nil }}
	b, err := broker.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.CheckSpace(); err != nil {
		t.Errorf("with 1 TiB free: %v", err)
	}
	free = 1 << 20
	says := func(err error) {
		t.Helper()
		if !errors.Is(err, broker.ErrDiskFull) || !strings.Contains(err.Error(), o.Dir) ||
			!strings.Contains(err.Error(), "kafka.data_dir") {
			t.Errorf("with 1 MiB free: %v", err)
		}
	}
	says(b.CheckSpace())
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	says(b.CheckSpace())
	_, err = broker.Start(o)
	says(err)

	o.Free = func(string) (uint64, error) { return 0, errors.New("not known here") }
	if b, err = broker.Start(o); err != nil {
		t.Fatalf("where free space is not known: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
