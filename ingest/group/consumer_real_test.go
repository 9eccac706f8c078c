package group_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/client"
	"giantstream/ingest/group"
	"giantstream/ingest/internal/kafkatest"
)

// TestRealMemberKilled: the shards of a worker that is killed go to the others once its session has
// timed out.
func TestRealMemberKilled(t *testing.T) {
	if name := os.Getenv("GIANTSTREAM_TEST_GROUP"); name != "" {
		beMember(t, name, strings.Split(os.Getenv("GIANTSTREAM_TEST_TOPICS"), ","))
		return
	}
	e := kafkatest.StartReal(t, 5)
	a := startWorker(t, e)
	await(t, []*worker{a}, 5)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	other := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestRealMemberKilled$")
	other.Env = append(os.Environ(), "GIANTSTREAM_TEST_GROUP="+e.Group,
		"GIANTSTREAM_TEST_TOPICS="+strings.Join(e.Topics.Inputs(), ","))
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "has a shard" {
	}
	await(t, []*worker{a}, 3)
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // killed
	await(t, []*worker{a}, 5)
	a.stop()
	<-a.done
}

// beMember is the worker that is killed.
func beMember(t *testing.T, name string, topics []string) {
	c, err := client.New(client.Options{Brokers: kafkatest.Brokers()})
	if err != nil {
		t.Fatal(err)
	}
	o := group.Options{Client: c, Group: name, Topics: topics, Log: slog.New(slog.DiscardHandler)}
	err = group.Run(t.Context(), o, func(ctx context.Context, _ group.Assignment) error {
		fmt.Println("has a shard")
		<-ctx.Done()
		return ctx.Err()
	})
	t.Fatal(err)
}
