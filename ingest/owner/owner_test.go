package owner_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"giantstream/ingest/client"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/ingest/owner"
)

func pipeline(n int) owner.Pipeline {
	return owner.Pipeline{Name: "shop", ID: fmt.Sprintf("%016x", n)}
}

func TestTheFirstPipelineOwnsATopic(t *testing.T) {
	e := kafkatest.Start(t, 1)
	first, second := pipeline(1), pipeline(2)
	for i := range 2 {
		o, claimed, err := owner.Ensure(t.Context(), e.Client, e.Topics.Embeddings, first)
		if err != nil || o.ID != first.ID || claimed != (i == 0) {
			t.Fatalf("call %d: %+v, %t, %v", i, o, claimed, err)
		}
	}
	_, _, err := owner.Ensure(t.Context(), e.Client, e.Topics.Embeddings, second)
	if !errors.Is(err, owner.ErrForeign) || !strings.Contains(err.Error(), first.ID) ||
		!strings.Contains(err.Error(), second.ID) || !strings.Contains(err.Error(), "claim --from "+first.ID) {
		t.Errorf("the second pipeline: %v", err)
	}
	if got := len(e.Read(t, owner.LogOf(e.Topics.Embeddings))); got != 1 {
		t.Errorf("the log has %d claims, want 1", got)
	}
}

// Of several that claim at once, one owns the topic, and the others know.
func TestOneOfManyOwnsATopic(t *testing.T) {
	e := kafkatest.Start(t, 1)
	const many = 6
	var errs [many]error
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() { _, _, errs[i] = owner.Ensure(t.Context(), e.Client, e.Topics.Embeddings, pipeline(i)) })
	}
	all.Wait()
	winners := 0
	for i, err := range errs {
		switch {
		case err == nil:
			winners++
			_, claimed, err := owner.Ensure(t.Context(), e.Client, e.Topics.Embeddings, pipeline(i))
			if err != nil || claimed {
				t.Errorf("pipeline %d does not keep the topic: %t, %v", i, claimed, err)
			}
		case !errors.Is(err, owner.ErrForeign):
			t.Errorf("pipeline %d: %v", i, err)
		}
	}
	if winners != 1 {
		t.Errorf("%d pipelines own the topic: %v", winners, errs)
	}
}

func TestATopicIsTaken(t *testing.T) {
	e := kafkatest.Start(t, 1)
	ctx, topic := t.Context(), e.Topics.Embeddings
	first, second, third := pipeline(1), pipeline(2), pipeline(3)
	first.Groups = []string{e.Group}
	guard := owner.Guard{Client: e.Client, Topic: topic, Mine: first, Log: slog.New(slog.DiscardHandler)}
	ids, err := e.Client.Identify(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	check := func() error { return guard.Check(ctx, ids[topic].ID) }
	if err := check(); err != nil {
		t.Fatal(err)
	}

	// While a worker of the owner runs, it stays the owner.
	worker, err := e.Client.Franz(kgo.ConsumerGroup(e.Group), kgo.ConsumeTopics(e.Topics.Nodes))
	if err != nil {
		t.Fatal(err)
	}
	for {
		members, err := e.Client.Members(ctx, e.Group)
		if err != nil {
			t.Fatal(err)
		}
		if members > 0 {
			break
		}
	}
	if err := owner.Take(ctx, e.Client, topic, second, first.ID); !errors.Is(err, owner.ErrBusy) {
		t.Errorf("while the owner runs: %v", err)
	}
	if err := worker.LeaveGroupContext(ctx); err != nil {
		t.Fatal(err)
	}
	worker.Close()
	if err := owner.Take(ctx, e.Client, topic, second, third.ID); !errors.Is(err, owner.ErrForeign) {
		t.Errorf("from one that is not the owner: %v", err)
	}
	if err := check(); err != nil {
		t.Errorf("the owner: %v", err)
	}
	for range 2 {
		if err := owner.Take(ctx, e.Client, topic, second, first.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := check(); !errors.Is(err, owner.ErrForeign) {
		t.Errorf("the owner of before: %v", err)
	}

	// With another number of shards it is the same pipeline.
	third.Continues = second.ID
	if _, _, err := owner.Ensure(ctx, e.Client, topic, third); err != nil {
		t.Error(err)
	}
	o, err := owner.Load(ctx, e.Client, topic, ids[topic].ID)
	if err != nil || o.ID != third.ID || len(o.Before) != 1 || o.Before[0] != second.ID {
		t.Errorf("%+v, %v", o, err)
	}
	if _, _, err := owner.Ensure(ctx, e.Client, topic, second); !errors.Is(err, owner.ErrForeign) {
		t.Errorf("the one that was left: %v", err)
	}
}

// A topic that was created again has no owner.
func TestAnotherTopicOfTheName(t *testing.T) {
	e := kafkatest.Start(t, 1)
	ctx, topic := t.Context(), e.Topics.Embeddings
	if _, _, err := owner.Ensure(ctx, e.Client, topic, pipeline(1)); err != nil {
		t.Fatal(err)
	}
	if o, err := owner.Load(ctx, e.Client, topic, "another"); err != nil || o != nil {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := owner.Load(ctx, e.Client, e.Topics.Nodes, "any"); err != nil || o != nil {
		t.Errorf("a topic without claims: %+v, %v", o, err)
	}
}

// A process that publishes asks no more often than it was told.
func TestAGuardAsksSeldom(t *testing.T) {
	e := kafkatest.Start(t, 1)
	ctx, topic := t.Context(), e.Topics.Embeddings
	ids, err := e.Client.Identify(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	guard := owner.Guard{Client: e.Client, Topic: topic, Mine: pipeline(1), Every: time.Hour,
		Log: slog.New(slog.DiscardHandler)}
	if err := guard.Check(ctx, ids[topic].ID); err != nil {
		t.Fatal(err)
	}
	e.Client.Close()
	if err := guard.Check(ctx, ids[topic].ID); err != nil {
		t.Errorf("it has asked again: %v", err)
	}
}

// A log that forgets claims is refused.
func TestALogThatDeletesClaimsIsRefused(t *testing.T) {
	e := kafkatest.Start(t, 1)
	err := e.Client.EnsureTopics(t.Context(), client.TopicSpec{Name: owner.LogOf(e.Topics.Embeddings), Partitions: 1,
		Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = owner.Ensure(t.Context(), e.Client, e.Topics.Embeddings, pipeline(1))
	if err == nil || !strings.Contains(err.Error(), "cleanup.policy=compact") {
		t.Errorf("it is used: %v", err)
	}
}
