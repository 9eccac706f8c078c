package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kfake"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/sinks"
	"giantstream/config"
	"giantstream/internal/canary"
	"giantstream/internal/race"
)

// secretFile is a configuration that is valid, and whose every secret is a canary.
type secretFile struct {
	fields  map[string]any // by path
	secrets map[string]string
}

// companions make a secret valid: what it is for, at a server and a broker that refuse it.
func companions(server, broker, dir string) map[string]any {
	return map[string]any{
		"store": "s3://bucket/prefix", "s3.endpoint": server, "s3.path_style": true, "state_dir": filepath.Join(dir,
			"state"),
		"kafka.brokers": broker, "kafka.sasl.mechanism": "SCRAM-SHA-256", "kafka.sasl.username": "me",
		"ingest.nodes.format": "avro", "ingest.schema_registry.url": server, "ingest.schema_registry.username": "me",
		"ingest.external.url": server, "ingest.external.model": "m", "ingest.external.dimensions": 8,
		"sinks.qdrant.url": server, "sinks.opensearch.url": server, "sinks.opensearch.username": "me",
		"sinks.milvus.url": server, "sinks.iceberg.uri": server, "http.listen": "",
	}
}

// plantSecrets returns the file, without the secret fields that without names.
func plantSecrets(t *testing.T, server, broker string, without ...string) *secretFile {
	t.Helper()
	f := &secretFile{fields: companions(server, broker, t.TempDir()), secrets: map[string]string{}}
	c := config.Default()
	c.EachField(func(path string, v reflect.Value, _ config.Effect) {
		if v.Type() != reflect.TypeFor[config.Secret]() || slices.Contains(without, path) {
			return
		}
		secret := canary.New(len(f.secrets))
		f.secrets[path] = secret
		f.fields[path] = secret
		if strings.HasSuffix(path, ".url") {
			f.fields[path] = "postgres://me:" + secret + "@127.0.0.1:1/db?sslmode=disable&sslpassword=" + secret
		}
	})
	return f
}

// write writes the file, with other values of some fields.
func (f *secretFile) write(t *testing.T, other map[string]any) string {
	t.Helper()
	root := map[string]any{}
	all := maps.Clone(f.fields)
	maps.Copy(all, other)
	for path, value := range all {
		section, names := root, strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			if section[name] == nil {
				section[name] = map[string]any{}
			}
			section = section[name].(map[string]any) //nolint:errcheck // made above
		}
		section[names[len(names)-1]] = value
	}
	text, err := yaml.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pipeline.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lockedBuffer takes what several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// refusingBroker returns the address of a broker that has another password for user me.
func refusingBroker(t *testing.T) string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "me", "another"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}

// configured are the commands that read a configuration, as the arguments that call them, and FILE for its name.
func configured(dir string) (calls [][]string) {
	needed := map[string][]string{
		"backfill":    {"--nodes", filepath.Join(dir, "nodes.jsonl")},
		"build stage": {"--partition", "0", "--generation", "1"},
		"export":      {"-o", filepath.Join(dir, "export")},
		"override":    {"--node", `{"id":"a","text":"b"}`},
		"reshard":     {"--from", filepath.Join(dir, "before")},
	}
	var walk func(*cobra.Command, []string)
	walk = func(c *cobra.Command, path []string) {
		for _, sub := range c.Commands() {
			walk(sub, append(slices.Clone(path), sub.Name()))
		}
		if !c.Runnable() || c.Flags().Lookup("config") == nil {
			return
		}
		args := slices.Concat(path, []string{"-c", "FILE"}, needed[strings.Join(path, " ")])
		if path[0] == "sink" {
			for _, kind := range sinks.Kinds {
				calls = append(calls, append(slices.Clone(args), kind.Name))
			}
			return
		}
		for n := range 3 {
			if given := slices.Repeat([]string{"1"}, n); c.Args == nil || c.Args(c, given) == nil {
				calls = append(calls, append(args, given...))
				return
			}
		}
	}
	walk(rootCommand(&command.App{Out: io.Discard, Err: io.Discard}), nil)
	return append(calls, []string{"config", "check", "FILE"}, []string{"config", "check", "FILE", "--json"})
}

// No command shows a secret: not with a file that has a fault, nor with one that is valid where every server refuses
// and every broker is away, at any level and in any format of the log.
func TestNoCommandShowsSecrets(t *testing.T) {
	race.SkipComputing(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>AccessDenied</Code><Message>Access Denied to %s</Message></Error>", r.URL.Path)
	}))
	defer server.Close()
	broker := refusingBroker(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nodes.jsonl"), []byte(`{"id":"a","text":"b"}`+"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	calls := configured(dir)
	if len(calls) < 30 {
		t.Fatalf("%d commands read a configuration: %v", len(calls), calls)
	}
	for name, f := range map[string]*secretFile{
		"token":    plantSecrets(t, server.URL, broker, "sinks.iceberg.client_password"),
		"password": plantSecrets(t, server.URL, broker, "sinks.iceberg.token"),
	} {
		if _, ok := f.fields["sinks.iceberg.client_password"]; ok {
			f.fields["sinks.iceberg.client_id"] = "me"
		}
		for fault, other := range map[string]map[string]any{
			"valid":         nil,
			"a fault":       {"shards": "many", "log.level": "loud"},
			"a wrong value": {"kafka.sasl.mechanism": "PLIAN", "s3.ca_file": "/nowhere", "sinks.malformed": "x"},
			"a file":        {"kafka.tls.enabled": true, "kafka.tls.ca_file": "/nowhere"},
			"a broker":      {"store": filepath.Join(dir, "store"), "ingest.nodes.format": "json"},
			"a registry":    {"store": filepath.Join(dir, "avro")},
		} {
			file := f.write(t, other)
			for i, call := range calls {
				if name == "password" && fault != "valid" {
					break // the same as with a token
				}
				t.Run(name+"/"+fault+"/"+strings.Join(call, " "), func(t *testing.T) {
					args := []string{"--log-level", "debug", "--log-format", []string{"text", "json"}[i%2]}
					for _, arg := range call {
						args = append(args, strings.Replace(arg, "FILE", file, 1))
					}
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					defer cancel()
					var out lockedBuffer
					code := Run(ctx, args, &out, &out, nil)
					if call[0] == "config" && (code == command.ExitOK) != (other == nil || other["store"] != nil ||
						other["kafka.tls.enabled"] != nil) {
						t.Errorf("exit code %d:\n%s", code, &out)
					}
					for path, secret := range f.secrets {
						if how := canary.Find(out.String(), secret); how != "" {
							t.Errorf("exit code %d, and %s shows %s:\n%s", code, path, how, &out)
						}
					}
				})
			}
		}
	}
}

// An address of a proxy that is malformed is refused by its variable, without the password in it.
func TestMalformedProxyDoesNotShow(t *testing.T) {
	secret := canary.New(1)
	file := plantSecrets(t, "http://127.0.0.1:1", "127.0.0.1:1", "sinks.iceberg.client_password").write(t, nil)
	for _, name := range []string{"HTTP_PROXY", "https_proxy"} {
		for _, value := range []string{"http://me:" + secret + "@%zz", "http://me:" + secret + "@[::1",
			"http://me:" + secret + "\x7f@h"} {
			t.Run(name, func(t *testing.T) {
				t.Setenv(name, value)
				for _, args := range [][]string{{"status", "-c", file}, {"config", "check", file}, {"run", "-c",
					file},
					{"status", "--store", t.TempDir()}} {
					var out lockedBuffer
					code := Run(t.Context(), args, &out, &out, nil)
					if how := canary.Find(out.String(), secret); how != "" || code != command.ExitUsage ||
						!strings.Contains(out.String(), name) {
						t.Errorf("%v with %q: exit code %d, shown %s:\n%s", args, value, code, how, &out)
					}
				}
			})
		}
	}
}
