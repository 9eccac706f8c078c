package pipelinetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"

	"giantstream/cmd/internal/profiles"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
)

// File is a file of tests.
type File struct {
	// Config is the pipeline's configuration, relative to the file; "" is the defaults.
	Config string `yaml:"config"`
	// Profile is the name of a profile below the configuration, "" for none. Files are read as it says.
	Profile string `yaml:"profile"`
	// Set changes fields of the configuration, as --set does.
	Set   []string `yaml:"set"`
	Tests []Case   `yaml:"tests"`

	dir  string
	read backfill.ReadOptions
}

// Case is one test: records of both topics, and what they must become.
type Case struct {
	Name  string `yaml:"name"`
	Nodes Input  `yaml:"nodes"`
	Edges Input  `yaml:"edges"`
	// Now is the clock by which ingest.max_future is measured; zero is the time of the run.
	Now    Time        `yaml:"now"`
	Expect Expectation `yaml:"expect"`
}

// Input are the records of one topic.
type Input []Record

// Record is a record of a topic: a mapping or a list is sent as JSON, a text as its bytes. A mapping with the field
// $value, and perhaps $key and $time, says more than the value. One with $file stands for the records of a file.
type Record struct {
	Value []byte // nil is null
	Key   *string
	Time  Time
	// File is relative to the file of the test, "" for a record.
	File            string
	ListSeparator   string
	SkipWithoutText bool
}

// envelope is a record that says more than its value.
type envelope struct {
	Value           any     `yaml:"$value"`
	Key             *string `yaml:"$key"`
	Time            Time    `yaml:"$time"`
	File            string  `yaml:"$file"`
	ListSeparator   string  `yaml:"$list_separator"`
	SkipWithoutText bool    `yaml:"$skip_without_text"`
}

// UnmarshalYAML implements yaml.BytesUnmarshaler.
func (r *Record) UnmarshalYAML(data []byte) error {
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		return err
	}
	if m, ok := value.(map[string]any); ok {
		for name := range m {
			if len(name) > 0 && name[0] == '$' {
				var e envelope
				if err := yaml.NewDecoder(bytes.NewReader(data), yaml.DisallowUnknownField()).Decode(&e); err != nil {
					return err
				}
				r.Key, r.Time, r.File = e.Key, e.Time, e.File
				r.ListSeparator, r.SkipWithoutText = e.ListSeparator, e.SkipWithoutText
				return r.set(e.Value)
			}
		}
	}
	return r.set(value)
}

func (r *Record) set(value any) (err error) {
	switch v := value.(type) {
	case nil:
	case string:
		r.Value = []byte(v)
	default:
		r.Value, err = json.Marshal(v)
	}
	return err
}

// Time is an RFC 3339 date-time.
type Time struct{ time.Time }

// UnmarshalYAML implements yaml.BytesUnmarshaler.
func (t *Time) UnmarshalYAML(data []byte) error {
	var text string
	err := yaml.Unmarshal(data, &text)
	if err == nil {
		t.Time, err = time.Parse(time.RFC3339Nano, text)
	}
	if err != nil {
		return fmt.Errorf("%.60q is not an RFC 3339 date-time like 2006-01-02T15:04:05Z", data)
	}
	return nil
}

// Expectation is what the records of a test must become. What is left out is not compared, but for dead letters: a test
// that names none expects none.
type Expectation struct {
	// Nodes are all nodes that some record has put, in any order.
	Nodes *[]Node `yaml:"nodes"`
	// Edges are all links of live nodes, in any order.
	Edges       *[]Edge  `yaml:"edges"`
	DeadLetters []Letter `yaml:"dead_letters"`
}

// Node is a node as its row has it. Fields that are left out are not compared.
type Node struct {
	ID        string    `yaml:"id"`
	Text      *string   `yaml:"text"`
	Class     *string   `yaml:"class"`
	Labels    *[]string `yaml:"labels"`
	EventTime Time      `yaml:"event_time"`
	Deleted   bool      `yaml:"deleted"`
}

// Edge is a link. In an undirected graph its ends are in any order.
type Edge struct {
	Src string `yaml:"src"`
	Dst string `yaml:"dst"`
	// Weight is not compared if it is left out.
	Weight *float32 `yaml:"weight"`
}

// ends are those of an edge.
type ends struct{ src, dst string }

// Letter is a dead letter. Fields that are left out are not compared.
type Letter struct {
	// Topic is nodes or edges.
	Topic string `yaml:"topic"`
	// Record counts the records of the topic from 1; of a file, it is the line.
	Record int64 `yaml:"record"`
	// Reason is the code.
	Reason string `yaml:"reason"`
	// Message is a part of the message, which names the field.
	Message string `yaml:"message"`
}

// maxFile bounds a file of tests, in bytes.
const maxFile = 16 << 20

// Load reads a file of tests.
func Load(path string) (*File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: is larger than %d MiB", path, maxFile>>20)
	}
	f := File{dir: filepath.Dir(path)}
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.DisallowUnknownField()).Decode(&f); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("is empty; give tests: with a name, nodes, edges and expect each")
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(f.Tests) == 0 {
		return nil, fmt.Errorf("%s: has no tests", path)
	}
	names := map[string]bool{}
	for i := range f.Tests {
		t := &f.Tests[i]
		switch {
		case t.Name == "":
			return nil, fmt.Errorf("%s: test %d has no name", path, i+1)
		case names[t.Name]:
			return nil, fmt.Errorf("%s: two tests are named %q", path, t.Name)
		case len(t.Nodes)+len(t.Edges) == 0:
			return nil, fmt.Errorf("%s: test %q has no records", path, t.Name)
		}
		names[t.Name] = true
		for _, l := range t.Expect.DeadLetters {
			if l.Topic != "" && l.Topic != nodesTopic && l.Topic != edgesTopic {
				return nil, fmt.Errorf("%s: test %q: the topic of a dead letter is %s or %s, not %q", path, t.Name,
					nodesTopic, edgesTopic, l.Topic)
			}
		}
	}
	return &f, nil
}

// configuration is what the tests of the file are about.
func (f *File) configuration() (*config.Config, error) {
	c := config.Default()
	var err error
	if f.Profile != "" {
		p, err := profiles.Find(f.Profile)
		if err != nil {
			return nil, err
		}
		f.read = p.Read
		if c, err = p.ApplyTo(&c); err != nil {
			return nil, err
		}
	}
	if f.Config != "" {
		c, err = wiring.LoadOver(c, false, filepath.Join(f.dir, f.Config), f.Set...)
	} else if err = c.Set(f.Set...); err == nil {
		err = c.Validate()
	}
	if err == nil {
		err = wiring.Check(&c)
	}
	return &c, err
}
