package preflight_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/ingest/preflight"
)

const shards = 4

func options(e *kafkatest.Env) preflight.Options {
	return preflight.Options{Client: e.Client, Topics: e.Topics, Mapping: kafkatest.Mapping(),
		Limits: kafkatest.Limits(), Shards: e.Shards}
}

// check runs the check until it says what it should: brokers heed a topic's new settings a moment
// later.
func check(t *testing.T, o preflight.Options, as func(warnings []string, err error) bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		warnings, err := preflight.Check(t.Context(), o)
		if as(warnings, err) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("warnings %q, error %v", warnings, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestTopicsAsWeMakeThemAreFine(t *testing.T) {
	e := kafkatest.Start(t, shards)
	var msgs []kafka.Message
	for i := range 100 {
		id := fmt.Sprint("n", i)
		msgs = append(msgs,
			kafka.Message{Topic: "nodes", Key: []byte(id), Value: fmt.Appendf(nil, `{"id":%q}`, id)},
			kafka.Message{Topic: "edges", Key: []byte(id), Value: fmt.Appendf(nil, `{"src":%q,"dst":"n0"}`, id)})
	}
	e.Send(t, msgs...)
	if warnings, err := preflight.Check(t.Context(), options(e)); err != nil || len(warnings) > 0 {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
}

func TestRecordsInTheWrongPartitionAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name     string
		key      func(i int, id string) []byte
		balancer kafka.Balancer
		says     string
	}{
		{"keyed by something else", func(i int, _ string) []byte { return fmt.Append(nil, "batch-", i) },
			&kafka.Murmur2Balancer{}, "keys by something else"},
		{"another partitioner", func(_ int, id string) []byte { return []byte(id) }, &kafka.CRC32Balancer{},
			"murmur2_random"},
		{"no key", func(int, string) []byte { return nil }, &kafka.RoundRobin{}, "its key is null"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := kafkatest.Start(t, shards)
			w := &kafka.Writer{Addr: kafka.TCP(e.Client.Brokers()...), Topic: e.Topics.Nodes,
				Balancer: tt.balancer, BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll}
			var msgs []kafka.Message
			for i := range 100 {
				id := fmt.Sprint("n", i)
				msgs = append(msgs, kafka.Message{Key: tt.key(i, id), Value: fmt.Appendf(nil, `{"id":%q}`, id)})
			}
			if err := errors.Join(w.WriteMessages(t.Context(), msgs...), w.Close()); err != nil {
				t.Fatal(err)
			}
			_, err := preflight.Check(t.Context(), options(e))
			if !errors.Is(err, preflight.ErrKeys) {
				t.Fatalf("error %v, want ErrKeys", err)
			}
			for _, says := range []string{tt.says, e.Topics.Nodes, "partition", "offset", "ingest.repartition: true"} {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("the message lacks %q: %v", says, err)
				}
			}
		})
	}
}

// After a change of the number of shards, the newest records of a topic may be of before.
func TestRecordsOfAFormerLayoutAreNoSign(t *testing.T) {
	e := kafkatest.Start(t, shards)
	var msgs []kafka.Message
	for i := range 100 {
		id := fmt.Sprint("n", i)
		msgs = append(msgs, kafka.Message{Topic: e.Topics.Nodes, Key: []byte(id), Value: fmt.Appendf(nil, `{"id":%q}`, id)})
	}
	w := &kafka.Writer{Addr: kafka.TCP(e.Client.Brokers()...), BatchTimeout: time.Millisecond,
		RequiredAcks: kafka.RequireAll,
		Balancer:     kafka.BalancerFunc(func(m kafka.Message, _ ...int) int { return client.Partition(m.Key, 3) })}
	if err := errors.Join(w.WriteMessages(t.Context(), msgs...), w.Close()); err != nil {
		t.Fatal(err)
	}
	o := options(e)
	if _, err := preflight.Check(t.Context(), o); !errors.Is(err, preflight.ErrKeys) {
		t.Fatalf("without a former layout: error %v, want ErrKeys", err)
	}
	o.Former = []int{7, 3}
	if warnings, err := preflight.Check(t.Context(), o); err != nil || len(warnings) > 0 {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
}

func TestAFewMisplacedRecordsAreAWarning(t *testing.T) {
	e := kafkatest.Start(t, shards)
	id := "n0"
	for i := 1; client.Partition([]byte(id), shards) == client.Partition([]byte("n0"), shards); i++ {
		id = fmt.Sprint("n", i)
	}
	e.Send(t,
		kafka.Message{Topic: "nodes", Key: []byte("n0"), Value: []byte(`{"id":"n0"}`)},
		kafka.Message{Topic: "nodes", Key: []byte("n0"), Value: []byte(`{"id":"n0"}`)},
		kafka.Message{Topic: "nodes", Key: []byte("n0"), Value: fmt.Appendf(nil, `{"id":%q}`, id)},
		kafka.Message{Topic: "nodes", Key: []byte("n0"), Value: []byte(`no JSON`)})
	warnings, err := preflight.Check(t.Context(), options(e))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "1 of 3") {
		t.Errorf("warnings %q, error %v; want one warning of 1 of 3", warnings, err)
	}
}

func TestSettingsThatLoseFacts(t *testing.T) {
	e := kafkatest.Start(t, shards)
	o := options(e)
	e.Configure(t, "edges", map[string]string{"cleanup.policy": "compact"})
	check(t, o, func(_ []string, err error) bool {
		return errors.Is(err, preflight.ErrCompacted) && strings.Contains(err.Error(), "edges")
	})
	o.Mapping.Edges.Mode = decode.Replace
	e.Configure(t, "nodes", map[string]string{"retention.ms": "604800000"})
	e.Configure(t, "embeddings", map[string]string{"cleanup.policy": "delete"})
	check(t, o, func(warnings []string, err error) bool {
		return err == nil && len(warnings) == 3 && strings.Contains(warnings[0], "retention.ms=604800000") &&
			strings.Contains(warnings[1], `edges" is compacted, and its records replace lists of links`) &&
			strings.Contains(warnings[2], "not compacted")
	})
	lists := func(warnings []string) int {
		return strings.Count(strings.Join(warnings, "\n"), "replace lists of links")
	}
	directed := o
	directed.Topics.Mirror = ""
	if warnings, err := preflight.Check(t.Context(), directed); err != nil || lists(warnings) > 0 {
		t.Errorf("without a mirror: warnings %q, error %v", warnings, err)
	}
	e.Configure(t, "edges", map[string]string{"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"})
	check(t, o, func(warnings []string, err error) bool { return err == nil && lists(warnings) == 0 })
	o.Mapping.Nodes.Debezium = true
	e.Configure(t, "nodes", map[string]string{"cleanup.policy": "compact"})
	check(t, o, func(warnings []string, err error) bool {
		return err == nil && strings.Contains(strings.Join(warnings, "\n"), "leave the tombstone of a deleted row alone")
	})
	o.Mapping.Nodes.Debezium, o.Mapping.Nodes.Edges = false, []decode.EdgePath{{Path: "also_bought[*]"}}
	check(t, o, func(warnings []string, err error) bool {
		return err == nil && lists(warnings) == 1 && strings.Contains(warnings[0], `nodes" is compacted`)
	})
	e.Configure(t, "mirror", map[string]string{"cleanup.policy": "compact,delete"})
	check(t, o, func(_ []string, err error) bool {
		return errors.Is(err, preflight.ErrCompacted) && strings.Contains(err.Error(), "mirror")
	})
}
