package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"giantstream/sink"
)

// shards is the number of partitions of the topics of throughput.
const shards = 8

// bareConsumer is this program's own command bare.
func (p *place) bareConsumer() contender {
	command := func(ctx context.Context, _ string, topics []string) (*exec.Cmd, error) {
		return p.self(ctx, append([]string{"bare", "-brokers", p.brokers}, topics...)...)
	}
	return contender{name: "kafka-go alone", command: command}
}

// giantstream is a pipeline with the given window time and compression of rows.
func (p *place) giantstream(window, compression string, profile bool) contender {
	return contender{
		name: fmt.Sprintf("giantstream, windows of %s, %s", window, compression),
		command: func(ctx context.Context, run string, topics []string) (*exec.Cmd, error) {
			// The edges topic always exists; in runs on nodes it is empty.
			file, err := p.configure(pipeline{name: run, nodes: topics[0], edges: topics[1], shards: shards,
				window: window + ", compression: " + compression})
			if err != nil {
				return nil, err
			}
			args := []string{"worker", "-config", file}
			if profile {
				args = append(args, "-cpuprofile", filepath.Join(p.dir, run+".prof"))
			}
			return p.self(ctx, args...)
		},
		clean: func(ctx context.Context, run string) error {
			if err := os.RemoveAll(p.stateDir(pipeline{name: run})); err != nil {
				return err
			}
			return p.clear(ctx, run)
		},
	}
}

// self makes another process of this program.
func (p *place) self(ctx context.Context, args ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	return exec.CommandContext(ctx, exe, args...), err
}

// peers are the other tools that cmd/bench/stream/run has installed in p.tools, and the names of
// those that it could not install. Each writes id and text of the records of one topic as Parquet,
// with a flush every 5 seconds. It otherwise has its defaults, unless they would hold it up.
func (p *place) peers() (have []contender, missing []string) {
	for _, c := range []struct {
		name, needs string
		command     func(ctx context.Context, run, topic string) (*exec.Cmd, error)
	}{
		{"Quix Streams, S3 file sink, snappy", "quix/.complete", p.quix},
		{"Benthos 4.27 (Redpanda Connect), zstd", "benthos/.complete", p.benthos},
		{"Kafka Connect, Iceberg sink, zstd", "connect/.complete", p.connect},
	} {
		if _, err := os.Stat(filepath.Join(p.tools, c.needs)); err != nil {
			missing = append(missing, c.name)
			continue
		}
		have = append(have, contender{
			name: c.name,
			peer: true,
			command: func(ctx context.Context, run string, topics []string) (*exec.Cmd, error) {
				return c.command(ctx, run, topics[0])
			},
			done:  p.awaitRows,
			clean: func(ctx context.Context, run string) error { return p.clear(ctx, folder(run)) },
		})
	}
	return have, missing
}

// folder is the part of the bucket where a peer writes: Quix Streams accepts no hyphens.
func folder(run string) string { return strings.ReplaceAll(run, "-", "_") }

// connect lets the worker wait for records for a second at most; its default is a minute. The sink
// reads the steps of a commit, which are records of its control topic, between two such waits, so
// at the end of a topic a commit would take minutes. There is one task: two tasks lock each other
// out of the catalog while they create it.
func (p *place) connect(ctx context.Context, run, topic string) (*exec.Cmd, error) {
	if err := p.topics(ctx, 1, run+".control"); err != nil {
		return nil, err
	}
	worker, connector := filepath.Join(p.dir, run+"-worker.properties"), filepath.Join(p.dir, run+"-sink.properties")
	if err := os.WriteFile(worker, fmt.Appendf(nil, `bootstrap.servers=%s
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
offset.storage.file.filename=%s
plugin.discovery=only_scan
offset.flush.interval.ms=1000
listeners=http://127.0.0.1:0
consumer.auto.offset.reset=earliest
`, p.brokers, filepath.Join(p.dir, run+".offsets")), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(connector, fmt.Appendf(nil, `name=%[1]s
connector.class=org.apache.iceberg.connect.IcebergSinkConnector
tasks.max=1
topics=%[2]s
iceberg.tables=bench.nodes
iceberg.tables.auto-create-enabled=true
iceberg.control.topic=%[1]s.control
iceberg.control.commit.interval-ms=5000
iceberg.control.commit.timeout-ms=10000
iceberg.kafka.bootstrap.servers=%[3]s
iceberg.catalog.catalog-impl=org.apache.iceberg.jdbc.JdbcCatalog
iceberg.catalog.uri=jdbc:sqlite:%[4]s?busy_timeout=60000
iceberg.catalog.warehouse=s3://%[5]s/%[6]s
iceberg.catalog.io-impl=org.apache.iceberg.aws.s3.S3FileIO
iceberg.catalog.client.region=us-east-1
iceberg.catalog.s3.endpoint=%[7]s
iceberg.catalog.s3.path-style-access=true
iceberg.catalog.s3.access-key-id=%[8]s
iceberg.catalog.s3.secret-access-key=%[9]s
`, run, topic, p.brokers, filepath.Join(p.dir, run+".sqlite"), p.bucket, folder(run), p.endpoint,
		os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")), 0o600); err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, "java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", filepath.Join(p.tools, "connect", "lib", "*"),
		"org.apache.kafka.connect.cli.ConnectStandalone", worker, connector), nil
}

func (p *place) quix(ctx context.Context, run, topic string) (*exec.Cmd, error) {
	return exec.CommandContext(ctx, filepath.Join(p.tools, "quix", "bin", "python"),
		filepath.Join(p.tools, "quix", "quix.py"), p.brokers, topic, run, p.endpoint, p.bucket, folder(run)), nil
}

func (p *place) benthos(ctx context.Context, run, topic string) (*exec.Cmd, error) {
	file := filepath.Join(p.dir, run+"-benthos.yaml")
	// checkpoint_limit is how many records of a partition may be unacknowledged: the default would
	// allow batches of only 1,024.
	err := os.WriteFile(file, fmt.Appendf(nil, `http: {enabled: false}
logger: {level: WARN}
input:
  kafka_franz:
    seed_brokers: ["%s"]
    topics: [%s]
    consumer_group: %s
    start_from_oldest: true
    checkpoint_limit: 100000
output:
  aws_s3:
    bucket: %s
    path: '%s/${! uuid_v4() }.parquet'
    endpoint: %s
    region: us-east-1
    force_path_style_urls: true
    max_in_flight: 4
    batching:
      count: 50000
      period: 5s
      processors:
        - parquet_encode:
            default_compression: zstd
            schema:
              - {name: id, type: UTF8}
              - {name: text, type: UTF8}
`, strings.ReplaceAll(p.brokers, ",", `", "`), topic, run, p.bucket, folder(run), p.endpoint), 0o600)
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, filepath.Join(p.tools, "benthos", "benthos"), "-c", file), nil
}

// awaitRows returns once the Parquet objects of a run have that many rows.
func (p *place) awaitRows(ctx context.Context, run string, rows int64) error {
	store, err := p.store(ctx, folder(run))
	if err != nil {
		return err
	}
	counted := map[string]bool{}
	have := int64(0)
	err = poll(ctx, 200*time.Millisecond, func() (bool, error) {
		for o, err := range store.List(ctx, "", "") {
			if err != nil {
				return false, err
			}
			if counted[o.Key] || !strings.HasSuffix(o.Key, ".parquet") {
				continue
			}
			n, err := parquetRows(ctx, store, o.Key)
			if err != nil {
				return false, err
			}
			counted[o.Key] = true
			have += n
		}
		return have >= rows, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d rows in %d objects: %w", have, rows, len(counted), err)
	}
	return nil
}

// parquetRows reads an object's footer.
func parquetRows(ctx context.Context, store sink.Store, key string) (int64, error) {
	o, err := store.Open(ctx, key)
	if err != nil {
		return 0, err
	}
	defer o.Close() //nolint:errcheck // it was only read
	f, err := parquet.OpenFile(o, o.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return 0, err
	}
	return f.NumRows(), nil
}
