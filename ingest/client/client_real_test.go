package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/client"
	"giantstream/ingest/internal/kafkatest"

	"github.com/segmentio/kafka-go"
)

func TestRealRecordOverTheTopicsLimit(t *testing.T) {
	e := kafkatest.StartReal(t, 1)
	large := kafka.Message{Topic: e.Topics.Edges, Key: []byte("k"), Value: make([]byte, 2<<20)}
	p := e.Client.NewProducer()
	defer p.Close()
	err := p.Send(t.Context(), large)
	if !errors.Is(err, kafka.MessageSizeTooLarge) || !strings.Contains(err.Error(), "max.message.bytes") {
		t.Errorf("got %v, want what to do about it", err)
	}
	e.Configure(t, "edges", map[string]string{"max.message.bytes": "4194304"})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	// The broker hears of the new limit a moment after the controller.
	for err := p.Send(ctx, large); err != nil; err = p.Send(ctx, large) {
		if !errors.Is(err, kafka.MessageSizeTooLarge) {
			t.Fatalf("after the limit was raised: %v", err)
		}
	}
	if got := e.Read(t, "edges"); len(got) != 1 || len(got[0].Value) != 2<<20 {
		t.Errorf("%d records came back", len(got))
	}
}

// trust returns a TLS configuration that trusts the test brokers.
func trust(t *testing.T) *tls.Config {
	t.Helper()
	file := os.Getenv("GIANTSTREAM_REAL_KAFKA_CA")
	if file == "" {
		t.Skip("needs Apache Kafka with TLS: make test-real")
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("%s holds no certificate", file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func TestRealSecurity(t *testing.T) {
	e := kafkatest.StartReal(t, 3)
	trusting := trust(t)
	user, password := os.Getenv("GIANTSTREAM_REAL_KAFKA_USER"), os.Getenv("GIANTSTREAM_REAL_KAFKA_PASSWORD")
	overTLS := strings.Split(os.Getenv("GIANTSTREAM_REAL_KAFKA_TLS"), ",")
	overSASL := strings.Split(os.Getenv("GIANTSTREAM_REAL_KAFKA_SASL"), ",")
	login := func(mechanism, password string) *client.SASL {
		return &client.SASL{Mechanism: mechanism, Username: user, Password: password}
	}
	for _, tt := range []struct {
		name string
		opts client.Options
		want string // in the error; "" for none
	}{
		{"TLS", client.Options{Brokers: overTLS, TLS: trusting}, ""},
		{"PLAIN", client.Options{Brokers: overSASL, TLS: trusting, SASL: login("PLAIN", password)}, ""},
		{"SCRAM-SHA-256", client.Options{Brokers: overSASL, TLS: trusting, SASL: login("SCRAM-SHA-256", password)}, ""},
		{"SCRAM-SHA-512", client.Options{Brokers: overSASL, TLS: trusting, SASL: login("SCRAM-SHA-512", password)}, ""},
		{"wrong password, PLAIN", client.Options{Brokers: overSASL, TLS: trusting,
			SASL: login("PLAIN", "wrong-secret")}, "SASL Authentication Failed"},
		{"wrong password, SCRAM", client.Options{Brokers: overSASL, TLS: trusting,
			SASL: login("SCRAM-SHA-512", "wrong-secret")}, "SASL Authentication Failed"},
		{"unknown authority", client.Options{Brokers: overTLS, TLS: &tls.Config{MinVersion: tls.VersionTLS12}},
			"certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := client.New(tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err = c.EnsureTopics(ctx, e.Topics.Specs(3)...)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want an error with %q", err, tt.want)
				}
				if err != nil && strings.Contains(err.Error(), "wrong-secret") {
					t.Errorf("the error shows the password: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			p := c.NewProducer()
			defer p.Close()
			if err := p.Send(ctx, kafka.Message{Topic: e.Topics.Nodes, Key: []byte(tt.name), Value: []byte("v")}); err != nil {
				t.Fatal(err)
			}
			if err := p.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			f, err := c.Fetch(ctx, e.Topics.Nodes, client.Partition([]byte(tt.name), 3), 0, 1<<20, time.Second)
			if err != nil || len(f.Records) == 0 {
				t.Errorf("fetched %d records, %v", len(f.Records), err)
			}
		})
	}
}

// TestRealSessionsEnd: SCRAM-SHA-512 has sessions of 3 seconds on the test brokers, and a fetch waits for one.
func TestRealSessionsEnd(t *testing.T) {
	e := kafkatest.StartReal(t, 1)
	c, err := client.New(client.Options{Brokers: strings.Split(os.Getenv("GIANTSTREAM_REAL_KAFKA_SASL"), ","),
		TLS: trust(t), SASL: &client.SASL{Mechanism: "SCRAM-SHA-512", Username: os.Getenv("GIANTSTREAM_REAL_KAFKA_USER"),
			Password: os.Getenv("GIANTSTREAM_REAL_KAFKA_PASSWORD")}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for began := time.Now(); time.Since(began) < 8*time.Second; {
		if _, err := c.Fetch(t.Context(), e.Topics.Nodes, 0, 0, 1<<20, time.Second); err != nil {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
	}
}
