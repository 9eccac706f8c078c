package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/stream/commitlog"
)

// TestRecoveryTime prints how long the shards of a worker that is killed are without embeddings, with and without
// standby. It measures and asserts that they come back, no times: GIANTSTREAM_RECOVERY=NODES runs it.
func TestRecoveryTime(t *testing.T) {
	nodes, _ := strconv.Atoi(os.Getenv("GIANTSTREAM_RECOVERY"))
	if nodes == 0 {
		t.Skip("measures for minutes; GIANTSTREAM_RECOVERY=NODES runs it")
	}
	for _, standby := range []int{0, 1} {
		for _, session := range []string{"10s", "6s"} {
			t.Run(fmt.Sprintf("standby %d, session timeout %s", standby, session), func(t *testing.T) {
				recovery(t, nodes, fmt.Sprintf("stream: {standby: %d}\nstate: {checkpoint_every: 20s}\n", standby), session)
			})
		}
	}
}

// recovery loads so many nodes, kills one of three workers, and prints when its shards go on.
func recovery(t *testing.T, nodes int, settings, session string) {
	w := newWorkers(t)
	w.settings = strings.Replace(w.settings, "kafka: {", "kafka: {session_timeout: "+session+", ", 1)
	w.settings = strings.Replace(w.settings, "window: {changes: 100, time: 200ms}", "window: {time: 1s}", 1)
	settings += "train: {encoder: linear}\nevaluate: {holdout_edges: 0, probe_rates: []}\n"
	w.settings = strings.Replace(w.settings, "train: {checkpoint_every: 1s}\nevaluate: {probe_rates: [0.5]}\n", "", 1)
	p := w.client.NewProducer()
	defer p.Close() //nolint:errcheck // test
	text := func(n, version int) []byte {
		return fmt.Appendf(nil, `{"id":"n%07d","text":"node%d version%d %s"}`, n, n%5000, version,
			strings.Repeat(fmt.Sprintf("word%d topic%d ", n%97, n%31), 35))
	}
	send := func(n, version int) {
		m := kafka.Message{Topic: "nodes", Key: fmt.Appendf(nil, "n%07d", n), Value: text(n, version)}
		if err := p.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	first := w.start(t, "one", settings)
	until(t, "the topics are there", func() bool {
		_, err := w.client.Identify(t.Context(), "nodes")
		return err == nil
	})
	for n := range nodes {
		send(n, 0)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := []*worker{first, w.start(t, "two", settings), w.start(t, "three", settings)}
	owner := func(shard int) string {
		head, err := commitlog.Head(t.Context(), w.store, shard)
		if err != nil || head == nil {
			return ""
		}
		return head.Writer
	}
	// Changes go on all the time, to every shard.
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				send((i*7919)%nodes, 1+i)
			}
		}
	}()
	defer func() { stop(); <-done }()
	until(t, "embeddings, a worker for each shard, and checkpoints that are kept warm if they are to be", func() bool {
		writers := map[string]bool{}
		for shard := range 3 {
			at, err := commitlog.LoadPublished(t.Context(), w.store, shard)
			doc, derr := commitlog.NewestCheckpoint(t.Context(), w.store, shard)
			if err != nil || derr != nil || at.Generation == 0 || doc == nil {
				return false
			}
			by := owner(shard)
			writers[by[:strings.LastIndexByte(by, '-')]] = true
			warm, err := commitlog.ReadStandby(t.Context(), w.store, shard)
			if err != nil || strings.Contains(settings, "standby: 1") && warm.Number != doc.Number {
				return false
			}
		}
		return len(writers) == 3
	})
	victim, dead := all[2], []int{}
	for shard := range 3 {
		if strings.Contains(owner(shard), fmt.Sprintf("-%d-", victim.pid)) {
			dead = append(dead, shard)
		}
	}
	behind := int64(0)
	for _, shard := range dead {
		doc, err := commitlog.NewestCheckpoint(t.Context(), w.store, shard)
		if err != nil {
			t.Fatal(err)
		}
		head, err := commitlog.Head(t.Context(), w.store, shard)
		if err != nil {
			t.Fatal(err)
		}
		behind += head.Next["nodes"] - doc.Applied["nodes"]
		t.Logf("shard %d: state of %d MiB", shard, doc.Bytes()>>20)
	}
	from, err := w.client.EndOffsets(t.Context(), "embeddings")
	if err != nil {
		t.Fatal(err)
	}
	victim.kill(t)
	killed := time.Now()
	var back time.Duration
	until(t, "an embedding of a change after the kill in a shard of the worker", func() bool {
		ends, err := w.client.EndOffsets(t.Context(), "embeddings")
		if err != nil {
			return false
		}
		for part, end := range ends["embeddings"] {
			for m, err := range w.client.Range(t.Context(), "embeddings", part, from["embeddings"][part], end) {
				if err != nil {
					t.Fatal(err)
				}
				from["embeddings"][part] = m.Offset + 1
				r, err := embeddingtopic.Decode(m)
				if err != nil {
					t.Fatal(err)
				}
				if r.Shard == dead[0] && time.UnixMicro(r.EventTime).After(killed) &&
					client.Partition([]byte(r.NodeID), 3) == dead[0] {
					back = time.Since(killed)
					return true
				}
			}
		}
		return false
	})
	t.Logf("first embedding %.1f s after the kill; %d records since the checkpoint", back.Seconds(), behind)
	for _, one := range all[:2] {
		for line := range strings.Lines(one.log()) {
			for _, what := range []string{"shards assigned", "restoring the state from", "state restored"} {
				if at := logged(line); bytes.Contains([]byte(line), []byte(what)) && at.After(killed) {
					t.Logf("%5.1f s: %s", at.Sub(killed).Seconds(), strings.TrimSpace(line))
				}
			}
		}
	}
	stop()
	<-done
	for _, one := range all[:2] {
		one.stop(t)
	}
}

// logged returns the time of a line of the log in JSON.
func logged(line string) time.Time {
	_, rest, _ := strings.Cut(line, `"time":"`)
	at, _, _ := strings.Cut(rest, `"`)
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return time.Time{}
	}
	return when
}
