package client

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"giantstream/internal/retry"
)

func secured(t *testing.T, mechanism, lifetimeMillis string) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(mechanism, "u", "p"),
		kfake.SeedTopics(8, "nodes"), kfake.BrokerConfigs(map[string]string{"connections.max.reauth.ms": lifetimeMillis}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

// TestSessionsAreRenewed: a connection logs in again before its session ends, and not before that.
func TestSessionsAreRenewed(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		for lifetime, renews := range map[string]bool{"1": true, "3600000": false, "0": false} {
			cluster := secured(t, mechanism, lifetime)
			var logins atomic.Int32
			cluster.ControlKey(kmsg.SASLHandshake.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				logins.Add(1)
				return nil, nil, false
			})
			m, err := (&SASL{Mechanism: mechanism, Username: "u", Password: "p"}).mechanism()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			conn, err := (&dialer{tcp: net.Dialer{}, mechanism: m}).dial(ctx, "tcp", cluster.ListenAddrs()[0])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			kc := protocol.NewConn(conn, "test")
			ask := func() (bool, error) {
				_, err := kc.RoundTrip(&apiversions.Request{})
				return !renews || logins.Load() > 2, err
			}
			for range 3 {
				if _, err := ask(); err != nil {
					t.Fatalf("%s, %s ms: %v", mechanism, lifetime, err)
				}
			}
			if err := retry.Poll(ctx, 16*time.Millisecond, ask); err != nil {
				t.Errorf("%s, %s ms: %v after %d logins", mechanism, lifetime, err, logins.Load())
			}
			if !renews {
				if n := logins.Load(); n != 1 {
					t.Errorf("%s, %s ms: %d logins", mechanism, lifetime, n)
				}
				continue
			}
			cluster.ControlKey(kmsg.SASLAuthenticate.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
				return refusal(req), nil, true
			})
			err = retry.Poll(ctx, 16*time.Millisecond, func() (bool, error) {
				_, err := kc.RoundTrip(&apiversions.Request{})
				return false, err
			})
			if !errors.Is(err, kafka.SASLAuthenticationFailed) {
				t.Errorf("%s: after the password changed: %v", mechanism, err)
			}
		}
	}
}

func refusal(req kmsg.Request) kmsg.Response {
	res := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	res.ErrorCode = kerr.SaslAuthenticationFailed.Code
	return res
}

// TestOffsetsSayWhyTheyFail: of several partitions, one is answered and one is asked for on a new connection, which
// is refused as after a change of the password.
func TestOffsetsSayWhyTheyFail(t *testing.T) {
	cluster := secured(t, "PLAIN", "0")
	refused := make(chan struct{})
	var once sync.Once
	logins := 0
	cluster.ControlKey(kmsg.SASLAuthenticate.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if logins++; logins <= 2 { // for metadata, and for one partition
			return nil, nil, false
		}
		once.Do(func() { close(refused) })
		return refusal(req), nil, true
	})
	cluster.ControlKey(kmsg.ListOffsets.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		cluster.SleepControl(func() { <-refused })
		return nil, nil, false
	})
	c, err := New(Options{Brokers: cluster.ListenAddrs(), SASL: &SASL{Mechanism: "PLAIN", Username: "u", Password: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = c.EndOffsets(ctx, "nodes")
	if !errors.Is(err, kafka.SASLAuthenticationFailed) || !strings.Contains(err.Error(), "check kafka.sasl.username") {
		t.Errorf("%v, want what to look at", err)
	}
}
