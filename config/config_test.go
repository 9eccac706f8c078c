package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/config"
)

var update = flag.Bool("update", false, "rewrite testdata/bad/*.want")

// environment is what the files in testdata find.
var environment = map[string]string{
	"AWS_ACCESS_KEY_ID":     "AKIA",
	"AWS_SECRET_ACCESS_KEY": "topsecret",
	"KAFKA_PASSWORD":        "topsecret",
	"NOT_A_NUMBER":          "topsecret",
	"BROKER":                "topsecret",
	"EMPTY":                 "",
}

func env(name string) (string, bool) {
	v, ok := environment[name]
	return v, ok
}

func parse(t *testing.T, file string) (config.Config, error) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return config.Parse(data, env)
}

func TestExampleStatesTheDefaults(t *testing.T) {
	got, err := config.Parse(config.Example(), env)
	if err != nil {
		t.Fatal(err)
	}
	if want := config.Default(); !reflect.DeepEqual(got, want) {
		t.Errorf("the example gives\n%+v\nand the defaults are\n%+v", got, want)
	}
	if len(got.Renamed()) > 0 {
		t.Errorf("the example has old names: %q", got.Renamed())
	}
}

// Every field of Config stands in the example, at its own depth.
func TestExampleNamesEveryField(t *testing.T) {
	example := string(config.Example())
	var walk func(reflect.Type, string)
	walk = func(typ reflect.Type, indent string) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if !f.IsExported() {
				continue
			}
			name := f.Tag.Get("yaml")
			if !strings.Contains(example, "\n"+indent+name+":") {
				t.Errorf("no line %q in the example", indent+name+":")
			}
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type, indent+"  ")
			}
		}
	}
	walk(reflect.TypeFor[config.Config](), "")
}

func TestGoodFiles(t *testing.T) {
	for file, edit := range map[string]func(*config.Config){
		"empty.yaml": func(*config.Config) {},
		"minimal.yaml": func(c *config.Config) {
			c.Pipeline, c.Store = "shop", "file:///data/store"
		},
		"amazon-kafka-s3.yaml": func(c *config.Config) {
			c.Pipeline, c.Store = "shop", "s3://catalog-features/giantstream"
			c.S3 = config.S3{Region: "eu-central-1", AccessKey: "AKIA", SecretKey: "topsecret"}
			c.Shards = 64
			c.Kafka.Brokers = config.List{"kafka-1.example:9093", "kafka-2.example:9093"}
			c.Kafka.Group = "giantstream-shop"
			c.Kafka.Topics.Nodes, c.Kafka.Topics.Edges = "catalog.products", "catalog.also-bought"
			c.Kafka.TLS = config.TLS{Enabled: true, CAFile: "/etc/ssl/kafka.pem"}
			c.Kafka.SASL = config.SASL{Mechanism: "SCRAM-SHA-512", Username: "giantstream", Password: "topsecret"}
			c.Ingest.Nodes.ID = "asin"
			c.Ingest.Nodes.Text = config.List{"title", "brand", "description"}
			c.Ingest.Nodes.Edges = config.List{"related.also_bought[*]"}
			c.Ingest.Edges = config.EdgeFields{Format: "json",
				Src: "asin", Dst: "related.also_bought[*]", Deleted: "deleted", Mode: "replace", Directed: config.List{},
				Topics: config.List{}}
			c.Refresh.MinChanges = 50_000
			c.HTTP.Listen = ""
		},
		"avro.yaml": func(c *config.Config) {
			c.Kafka.Brokers = config.List{"kafka:9092"}
			c.Ingest.Nodes.Format, c.Ingest.Nodes.ID, c.Ingest.Nodes.EventTime = "avro", "sku", "updated_at"
			c.Ingest.Edges.Format = "protobuf"
			c.Ingest.SchemaRegistry = config.SchemaRegistry{URL: "https://registry.example:8081/sub", Username: "me",
				Password: "topsecret", CAFile: "ca.pem"}
		},
		"http-tokens.yaml": func(c *config.Config) {
			c.HTTP.Tokens = []config.Bearer{
				{Name: "shop", Token: "one-secret", Scopes: config.List{"read", "embed"}, Rate: 0.5, Concurrent: 8},
				{Name: "operator", Token: "another-secret", Scopes: config.List{"admin"}}}
			c.HTTP.TLS = config.HTTPTLS{CertFile: "/run/tls/tls.crt", KeyFile: "/run/tls/tls.key"}
			c.HTTP.CORS.Origins = config.List{"https://shop.example", "http://localhost:8000"}
		},
		"forms.yaml": func(c *config.Config) {
			c.Store = "./data"
			c.Kafka.Brokers = config.List{"localhost:9092"}
			c.Ingest.Nodes.Text = config.List{"title"}
			c.Ingest.Limits.RecordBytes = 2 * config.MiB
			c.Ingest.Limits.TextBytes = 1536 * config.KiB
			c.Window.Time = 250 * time.Millisecond
			c.Train.Seed, c.Train.Threads = 7, 2
			c.Log.Level = "debug"
			c.StateDir = "/tmp/${not-a-variable}/$HOME"
		},
	} {
		t.Run(file, func(t *testing.T) {
			got, err := parse(t, filepath.Join("good", file))
			if err != nil {
				t.Fatal(err)
			}
			want := config.Default()
			edit(&want)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

// A field may have its old name, or be no more, which gives a hint.
func TestOldNames(t *testing.T) {
	got, err := parse(t, "good/old-names.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got.Ingest.Nodes.Class != "section" || got.Embedding.Dim != 32 {
		t.Errorf("the class is in %q, the dimension %d", got.Ingest.Nodes.Class, got.Embedding.Dim)
	}
	want := []string{"line 2: ingest.nodes.label is called ingest.nodes.class now",
		"line 4: featurize.pifa.dim is called embedding.dim now",
		"line 6: stream.commit is no more and says nothing: each shard commits its windows by itself; a store that was " +
			"written with 'group' is refused, with a sentence that says how to write it again",
		"line 8: refresh.mode is no more and says nothing: every refresh makes all of a generation",
		"line 10: sink.canary is no more and says nothing: a generation is tried on a topic of its own, which " +
			"sink.canary_topic names"}
	if !slices.Equal(got.Renamed(), want) {
		t.Errorf("the hints are %q", got.Renamed())
	}
}

// Each testdata/bad/NAME.yaml is refused with the message in NAME.want.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files (%v)", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, filepath.Join("bad", name))
			if err == nil {
				t.Fatal("accepted")
			}
			got := err.Error() + "\n"
			if strings.Contains(got, "topsecret") {
				t.Errorf("the message gives a secret away:\n%s", got)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".want"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join("testdata", "bad", "duplicate-field.yaml")
	_, err := config.Load(path, nil)
	var faults *config.Error
	if !errors.As(err, &faults) || faults.File != path || len(faults.Faults) != 1 || faults.Faults[0].Line != 3 {
		t.Errorf("got %v", err)
	}
	if _, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v for a file that does not exist", err)
	}
}

func TestValidateReportsWhatFlagsBroke(t *testing.T) {
	c := config.Default()
	if err := c.Validate(); err != nil {
		t.Fatalf("the defaults are not valid: %v", err)
	}
	c.Shards, c.Train.Encoder = 0, "none"
	var faults *config.Error
	if err := c.Validate(); !errors.As(err, &faults) || len(faults.Faults) != 2 {
		t.Errorf("got %v, want two faults", err)
	}
}

func TestDerivedNames(t *testing.T) {
	c := config.Default()
	c.Pipeline = "shop"
	for got, want := range map[string]string{
		c.Group():       "giantstream-shop",
		c.Mirror():      "shop.mirror",
		c.DeadLetters(): "shop.dead-letters",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	c.Kafka.Group, c.Kafka.Topics.Mirror, c.Kafka.Topics.DeadLetters = "g", "m", "d"
	if c.Group() != "g" || c.Mirror() != "m" || c.DeadLetters() != "d" {
		t.Errorf("configured names are not used: %q %q %q", c.Group(), c.Mirror(), c.DeadLetters())
	}
}

func TestWarnings(t *testing.T) {
	c := config.Default()
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("the defaults warn: %q", w)
	}
	c.Store, c.S3.Insecure = "s3://bucket", true
	c.HTTP.Listen = ":9464"
	c.Kafka.Brokers = config.List{"kafka:9092"}
	c.Kafka.SASL.Mechanism = "PLAIN"
	if w := c.Warnings(); len(w) != 3 {
		t.Errorf("got %d warnings, want 3: %q", len(w), w)
	}
}

// Editors on Windows begin a file with a byte order mark.
func TestAByteOrderMarkIsNoPartOfTheFirstField(t *testing.T) {
	for _, text := range []string{string(config.Example()), "pipeline: shop\n", "# a comment\npipeline: shop\n", ""} {
		got, err := config.Parse([]byte("\ufeff"+text), env)
		want, plain := config.Parse([]byte(text), env)
		if err != nil || plain != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%.20q: %v, without the mark %v", text, err, plain)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(config.Example())
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse(data, env)
		if err != nil {
			var faults *config.Error
			if !errors.As(err, &faults) || len(faults.Faults) == 0 {
				t.Fatalf("error without faults: %v", err)
			}
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("accepted, but not valid: %v", err)
		}
	})
}
