package client

import (
	"context"
	"errors"
	"net"
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
			cluster.ControlKey(kmsg.SASLAuthenticate.Int16(), refuse)
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

func refuse(req kmsg.Request) (kmsg.Response, error, bool) {
	res := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	res.ErrorCode = kerr.SaslAuthenticationFailed.Code
	return res, nil, true
}
