package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/sink/s3store"
)

// place is where everything runs: the servers of cmd/dev, as the environment names them, and a
// directory for the rest.
type place struct {
	brokers, endpoint, bucket string
	// dir is for state directories, configurations and logs; tools holds the programs that
	// cmd/bench/stream/run installed and built.
	dir, tools string
	client     *client.Client
}

func openPlace(dir string) (*place, error) {
	p := &place{brokers: os.Getenv("GIANTSTREAM_REAL_KAFKA"), endpoint: os.Getenv("GIANTSTREAM_REAL_S3"),
		bucket: os.Getenv("GIANTSTREAM_REAL_S3_BUCKET")}
	if p.brokers == "" || p.endpoint == "" || p.bucket == "" {
		return nil, errors.New("no servers in the environment: run cmd/bench/stream/run, or see cmd/dev/README.md")
	}
	var err error
	if p.dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	p.tools = filepath.Dir(p.dir)
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	p.client, err = client.New(client.Options{Brokers: strings.Split(p.brokers, ","), ClientID: "bench"})
	return p, err
}

// store is the part of the bucket under a prefix.
func (p *place) store(ctx context.Context, prefix string) (sink.Store, error) {
	return s3store.Open(ctx, p.bucket, prefix, s3store.Options{Endpoint: p.endpoint, PathStyle: true})
}

// clear removes everything under a prefix.
func (p *place) clear(ctx context.Context, prefix string) error {
	s, err := p.store(ctx, prefix)
	if err != nil {
		return err
	}
	for o, err := range s.List(ctx, "", "") {
		if err != nil {
			return err
		}
		if err := s.Delete(ctx, o.Key); err != nil {
			return err
		}
	}
	return nil
}

// topics makes topics for a graph; their records stay.
func (p *place) topics(ctx context.Context, partitions int, names ...string) error {
	var specs []client.TopicSpec
	for _, n := range names {
		specs = append(specs, client.TopicSpec{Name: n, Partitions: partitions})
	}
	return p.client.EnsureTopics(ctx, specs...)
}

// pipeline is a giantstream pipeline of this program.
type pipeline struct {
	name         string
	nodes, edges string // topics
	shards       int
	window       string
	listen       string // http.listen
	// worker distinguishes the workers of one pipeline: each has a state directory of its own.
	worker string
	// session is the group's session timeout, 0 for the default.
	session time.Duration
	// more is appended to the configuration.
	more string
}

// configure writes the pipeline's configuration and returns its path.
func (p *place) configure(l pipeline) (string, error) {
	path := filepath.Join(p.dir, l.name+l.worker+".yaml")
	quoted := "\"" + strings.ReplaceAll(p.brokers, ",", `", "`) + "\""
	return path, os.WriteFile(path, fmt.Appendf(nil, `pipeline: %[1]s
store: s3://%[2]s/%[1]s
s3: {endpoint: "%[3]s"}
state_dir: "%[4]s"
shards: %[5]d
kafka:
  brokers: [%[6]s]
  session_timeout: %[11]v
  topics: {nodes: %[7]s, edges: %[8]s, embeddings: %[1]s.embeddings}
window: {time: %[9]s}
http: {listen: "%[12]s"}
log: {level: warn, format: text}
%[10]s`, l.name, p.bucket, p.endpoint, p.stateDir(l), l.shards, quoted, l.nodes, l.edges, l.window, l.more,
		cmp.Or(l.session, 10*time.Second), l.listen), 0o600)
}

func (p *place) stateDir(l pipeline) string { return filepath.Join(p.dir, l.name+l.worker+"-state") }

// progress reports on standard error; results go to standard output.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
