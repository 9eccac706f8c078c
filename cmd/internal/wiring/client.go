package wiring

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"giantstream/config"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
)

// ClientOptions says how to reach the cluster that the configuration names.
func ClientOptions(cfg *config.Config) (client.Options, error) {
	o := client.Options{Brokers: cfg.Kafka.Brokers, ClientID: "giantstream-" + cfg.Pipeline,
		RecordBytes: recordBytes(cfg), ReadUncommitted: cfg.Ingest.Isolation == config.ReadUncommitted}
	if cfg.Kafka.Embedded() {
		return o, nil
	}
	if t := cfg.Kafka.TLS; t.Enabled {
		var err error
		if o.TLS, err = tlsConfig("kafka.tls", t.CAFile, t.CertFile, t.KeyFile); err != nil {
			return o, err
		}
		o.TLS.InsecureSkipVerify = t.InsecureSkipVerify //nolint:gosec // asked for by name
	}
	if s := cfg.Kafka.SASL; s.Mechanism != "" {
		o.SASL = &client.SASL{Mechanism: s.Mechanism, Username: s.Username, Password: string(s.Password)}
	}
	return o, nil
}

// Connect returns a client to the configured cluster and makes sure that the topics exist. The
// cluster must not be the embedded broker, which lives in the process of `run`.
func Connect(ctx context.Context, cfg *config.Config) (*client.Client, error) {
	opts, err := ClientOptions(cfg)
	if err != nil {
		return nil, err
	}
	c, err := client.New(opts)
	if err != nil {
		return nil, err
	}
	return c, EnsureTopics(ctx, c, cfg)
}

// Attach connects to the pipeline's cluster for a command that inspects or repairs. It starts the
// embedded broker for as long as the command runs; no other process may be running it. Call the
// returned function when done.
func Attach(ctx context.Context, cfg *config.Config) (*client.Client, func() error, error) {
	if !cfg.Kafka.Embedded() {
		c, err := Connect(ctx, cfg)
		return c, func() error { c.Close(); return nil }, err
	}
	if _, err := os.Stat(cfg.Kafka.DataDir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("the embedded broker's log is not at %s: give the configuration that the pipeline "+
			"runs with (kafka.data_dir)", cfg.Kafka.DataDir)
	}
	b, err := broker.Start(broker.Options{Dir: cfg.Kafka.DataDir})
	if err != nil {
		return nil, nil, err
	}
	opts, err := ClientOptions(cfg)
	if err == nil {
		opts.Brokers = b.Addrs()
		var c *client.Client
		if c, err = client.New(opts); err == nil {
			return c, func() error { c.Close(); return b.Close() }, nil
		}
	}
	_ = b.Close() // the first error is the one to report
	return nil, nil, err
}

// EndOffsets returns the end offsets of the input topics, per topic and shard: of what can be read,
// and of what open transactions hold back as well. It returns nil for the embedded broker, which is
// reachable from its own process alone.
func EndOffsets(ctx context.Context, cfg *config.Config) (readable, log map[string][]int64, err error) {
	if cfg.Kafka.Embedded() {
		return nil, nil, nil
	}
	opts, err := ClientOptions(cfg)
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New(opts)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	return EndOffsetsOf(ctx, c, cfg)
}

// EndOffsetsOf is EndOffsets on a connection that is there.
func EndOffsetsOf(ctx context.Context, c *client.Client, cfg *config.Config) (readable, log map[string][]int64,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// The log's ends first: what comes in between would look like records of open transactions.
	if log, err = c.LogEndOffsets(ctx, TopicsOf(cfg).Inputs()...); err != nil {
		return nil, nil, err
	}
	readable, err = c.EndOffsets(ctx, TopicsOf(cfg).Inputs()...)
	return readable, log, err
}

// EnsureTopics creates the pipeline's topics where they are missing and checks that the inputs are
// partitioned alike.
func EnsureTopics(ctx context.Context, c *client.Client, cfg *config.Config) error {
	topics := TopicsOf(cfg)
	specs := topics.Specs(cfg.Shards)
	for i := range specs {
		if topics.Copied(specs[i].Name) {
			specs[i].MaxMessageBytes = keyedMessageBytes(cfg)
			specs[i].CreateTime = true // a record's timestamp can be its event time, and its copy has the same
		}
	}
	return c.EnsureTopics(ctx, specs...)
}

// recordBytes is the size of the largest record that is read whole: a value at its limit, with room
// for key and headers, and at least a large dead letter or embedding.
func recordBytes(cfg *config.Config) int {
	return max(8<<20, int(cfg.Ingest.Limits.RecordBytes)+128<<10)
}

// keyedMessageBytes is the size of the largest record on a keyed topic: a value at its limit, with
// room for key and headers.
func keyedMessageBytes(cfg *config.Config) int {
	return max(1<<20, int(cfg.Ingest.Limits.RecordBytes)) + 128<<10
}

// TLS returns the TLS settings of a server whose certificate a private authority may have signed.
func TLS(section, caFile string) (*tls.Config, error) { return tlsConfig(section, caFile, "", "") }

// tlsConfig returns the TLS settings of a section of the configuration, with a private authority
// and a client certificate unless they are "".
func tlsConfig(section, caFile, certFile, keyFile string) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("%s.ca_file: %w", section, err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s.ca_file: %s holds no PEM certificate", section, caFile)
		}
	}
	if certFile != "" {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("%s.cert_file and key_file: %w", section, err)
		}
		conf.Certificates = []tls.Certificate{cert}
	}
	return conf, nil
}
