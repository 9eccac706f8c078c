package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"giantstream/internal/retry"
)

// Options says how to reach a Kafka cluster.
type Options struct {
	// Brokers are host:port pairs to bootstrap from.
	Brokers []string
	// TLS, when not nil, encrypts every connection.
	TLS *tls.Config
	// SASL, when not nil, authenticates every connection.
	SASL *SASL
	// ClientID names this process to the brokers (quotas, logs).
	ClientID string
	// RecordBytes bounds the records that are read whole; larger ones are Fetched.TooLarge. 0 means 8
	// MiB.
	RecordBytes int
	// ReadUncommitted: records of open and of aborted transactions are read, too.
	ReadUncommitted bool
}

// SASL holds the credentials of one user.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
	Mechanism string
	Username  string
	Password  string
}

// Client is a set of connections to one cluster, shared by all users in this process. It is safe
// for concurrent use.
type Client struct {
	brokers []string
	addr    net.Addr
	// encrypted, certified, passworded: connections have TLS, a client certificate, a password.
	encrypted, certified, passworded bool
	transport                        *kafka.Transport
	kafka                            *kafka.Client
	franz                            franzClient // for requests that kafka-go lacks

	outage retry.Outage // of all readers

	recordBytes   int
	isolation     kafka.IsolationLevel
	decompressors decompressors
}

// New returns a client; it connects when first used.
func New(o Options) (*Client, error) {
	if len(o.Brokers) == 0 {
		return nil, errors.New("kafka: no broker address given")
	}
	mechanism, err := o.SASL.mechanism()
	if err != nil {
		return nil, err
	}
	d := &dialer{tcp: net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}, tls: o.TLS,
		mechanism: mechanism, clientID: o.ClientID}
	c := &Client{
		brokers:     o.Brokers,
		franz:       franzClient{options: franzOptions(o)},
		addr:        kafka.TCP(o.Brokers...),
		encrypted:   o.TLS != nil,
		certified:   o.TLS != nil && (len(o.TLS.Certificates) > 0 || o.TLS.GetClientCertificate != nil),
		passworded:  o.SASL != nil,
		recordBytes: o.RecordBytes,
		isolation:   kafka.ReadCommitted,
		transport: &kafka.Transport{
			Dial:        d.dial,
			DialTimeout: dialTimeout,
			IdleTimeout: time.Minute,
			ClientID:    o.ClientID,
		},
	}
	if c.recordBytes == 0 {
		c.recordBytes = defaultRecordBytes
	}
	if o.ReadUncommitted {
		c.isolation = kafka.ReadUncommitted
	}
	c.kafka = &kafka.Client{Addr: c.addr, Transport: c.transport}
	return c, nil
}

func (s *SASL) mechanism() (sasl.Mechanism, error) {
	if s == nil {
		return nil, nil
	}
	switch s.Mechanism {
	case "PLAIN":
		return plain.Mechanism{Username: s.Username, Password: s.Password}, nil
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, s.Username, s.Password)
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, s.Username, s.Password)
	default:
		return nil, fmt.Errorf("kafka: unknown SASL mechanism %q: use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
			s.Mechanism)
	}
}

// Brokers returns the bootstrap addresses.
func (c *Client) Brokers() []string { return c.brokers }

// Close closes idle connections. Requests in flight finish.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	c.franz.close()
}

const (
	// requestTimeout bounds every administrative request.
	requestTimeout = 20 * time.Second
	// dialTimeout bounds connecting to a broker, up to its first answer. A request has time for several brokers.
	dialTimeout = 5 * time.Second
)

func withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTimeout)
}
