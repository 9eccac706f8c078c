package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestAClientOverItsQuotaWaits: brokers answer its fetches at once, without any topic, and say how long to wait.
func TestAClientOverItsQuotaWaits(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "nodes"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	c := connected(t, cluster.ListenAddrs())
	throttled := 0
	throttle := func(times int, millis int32, then func()) {
		throttled = 0
		cluster.ControlKey(kmsg.Fetch.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
			if throttled == times {
				return nil, nil, false
			}
			cluster.KeepControl()
			throttled++
			then()
			res := req.ResponseKind().(*kmsg.FetchResponse)
			res.ThrottleMillis = millis
			return res, nil, true
		})
	}

	throttle(3, 1, func() {})
	f, err := c.Fetch(t.Context(), "nodes", 0, 0, 1<<20, time.Millisecond)
	if err != nil || f.Next != 0 || throttled != 3 {
		t.Errorf("%+v, %v after %d answers; want what the fourth one says", f, err, throttled)
	}

	ctx, cancel := context.WithCancel(t.Context())
	throttle(1, 3_600_000, cancel)
	_, err = c.Fetch(ctx, "nodes", 0, 0, 1<<20, time.Millisecond)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the context ends: %v", err)
	}
}
