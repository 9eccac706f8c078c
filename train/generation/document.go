package generation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"giantstream/sink"
)

// DocFormat is the version of generation.json; readers refuse others.
const DocFormat = 1

// Status of a generation.
type Status string

// A generation is building until everything it consists of is in the store.
const (
	Building Status = "building"
	Ready    Status = "ready"
)

// ErrNone: the store holds no generation that fits the question.
var ErrNone = errors.New("no generation yet")

// Doc is generations/<g>/generation.json.
type Doc struct {
	Format     int    `json:"format"`
	Generation int64  `json:"generation"`
	Parent     int64  `json:"parent,omitempty"` // the ready generation before it, 0 for none
	Status     Status `json:"status"`
	// Cut is, per shard, the sequence number of the newest manifest included.
	Cut map[int]int64 `json:"cut"`
	// GraphHash identifies the graph at the cut, whatever the number of
	// shards and windows it arrived in.
	GraphHash string    `json:"graph_hash,omitempty"`
	Settings  Settings  `json:"settings"`
	Created   time.Time `json:"created"`
	Finished  time.Time `json:"finished,omitzero"`

	Graph      GraphStats      `json:"graph,omitzero"`
	Vectorizer VectorizerStats `json:"vectorizer,omitzero"`
	Tree       TreeStats       `json:"tree,omitzero"`
	// Mapping compares the tree with the parent generation's, nil without parent.
	Mapping *MappingStats `json:"mapping,omitempty"`
	Encoder EncoderStats  `json:"encoder,omitzero"`
	// Evaluation holds one report per encoder, text-only baseline first.
	Evaluation []Evaluation `json:"evaluation,omitempty"`
	// Stages are the seconds that each stage took in the process that
	// finished the build (near 0 for stages that it found done).
	Stages []StageTime `json:"stages,omitempty"`
	// Embeddings are the Parquet parts, one per shard that has nodes.
	Embeddings []Part `json:"embeddings,omitempty"`
	// Dataset are the Parquet parts of the training set.
	Dataset []Part `json:"dataset,omitempty"`
}

// GraphStats describes the graph at the cut.
type GraphStats struct {
	Nodes    int `json:"nodes"`
	Deleted  int `json:"deleted"`
	Links    int `json:"links"`    // stored adjacencies (an undirected edge counts twice)
	Dangling int `json:"dangling"` // labels left out because their node does not exist
	Hidden   int `json:"hidden"`   // edges held out for the evaluation
	Isolated int `json:"isolated"` // nodes without a neighbour
	Hubs     int `json:"hubs"`     // nodes over max_degree: labels, but no instances
	Classes  int `json:"classes"`
	// MaxDegree is the largest degree found.
	MaxDegree int `json:"max_degree"`
}

// VectorizerStats describes Ψ on the texts it was fitted to.
type VectorizerStats struct {
	Features int `json:"features"`
	// UnknownShare of the texts' n-grams are no features: too rare, or in nearly every
	// text. It rises in texts that come later.
	UnknownShare float64 `json:"unknown_share"`
}

// TreeStats describes the label tree.
type TreeStats struct {
	Labels     int     `json:"labels"`
	Levels     []int   `json:"levels"` // clusters per level, coarse to fine
	MeanCosine float64 `json:"mean_cosine"`
}

// EncoderStats describes the trained encoder.
type EncoderStats struct {
	Kind    string          `json:"kind"`
	Dim     int             `json:"dim"`
	Bytes   int64           `json:"bytes"`
	Metrics json.RawMessage `json:"metrics,omitempty"` // the trainer's own report
}

// Part names a Parquet object.
type Part struct {
	Key    string `json:"key"`
	Shard  int    `json:"shard"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}

// StageTime is how long a stage took.
type StageTime struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Prefix returns the key prefix of generation g, ending in a slash.
func Prefix(g int64) string { return fmt.Sprintf("generations/%06d/", g) }

func docKey(g int64) string { return Prefix(g) + "generation.json" }

// Load reads generation g's document, ErrNone if there is none.
func Load(ctx context.Context, store sink.Store, g int64) (*Doc, error) {
	data, err := sink.ReadAll(ctx, store, docKey(g))
	if errors.Is(err, sink.ErrNotFound) {
		return nil, fmt.Errorf("generation %d: %w", g, ErrNone)
	}
	if err != nil {
		return nil, err
	}
	var d Doc
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", docKey(g), err)
	}
	if d.Format != DocFormat {
		return nil, fmt.Errorf("%s has format %d, this build reads %d: upgrade giantstream", docKey(g), d.Format, DocFormat)
	}
	if d.Generation != g {
		return nil, fmt.Errorf("%s describes generation %d", docKey(g), d.Generation)
	}
	return &d, nil
}

// create writes the document of a build that begins. Of several that begin
// the same generation one goes on: its cut and settings are those of all that follows.
func (d *Doc) create(ctx context.Context, store sink.Store) error {
	data, err := d.encode()
	if err != nil {
		return err
	}
	err = store.Create(ctx, docKey(d.Generation), data)
	if errors.Is(err, sink.ErrExists) {
		return fmt.Errorf("generation %d was begun by another process in the meantime: %w", d.Generation, err)
	}
	return err
}

// save replaces the document.
func (d *Doc) save(ctx context.Context, store sink.Store) error {
	data, err := d.encode()
	if err != nil {
		return err
	}
	return sink.PutBytes(ctx, store, docKey(d.Generation), data)
}

func (d *Doc) encode() ([]byte, error) {
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}

// Numbers lists the generations in the store, ascending, ready or not.
// It skips from one generation's folder to the next, so its cost does not
// grow with the objects inside them.
func Numbers(ctx context.Context, store sink.Store) ([]int64, error) {
	const root = "generations/"
	var gens []int64
	for after := ""; ; {
		var key string
		for info, err := range store.List(ctx, root, after) {
			if err != nil {
				return nil, err
			}
			key = info.Key
			break
		}
		if key == "" {
			return gens, nil
		}
		folder, _, _ := strings.Cut(strings.TrimPrefix(key, root), "/")
		if g, err := strconv.ParseInt(folder, 10, 64); err == nil && g > 0 {
			gens = append(gens, g)
		}
		after = root + folder + "/~" // '~' sorts after every key byte
	}
}

// Current returns the newest ready generation, or ErrNone.
func Current(ctx context.Context, store sink.Store) (*Doc, error) {
	gens, err := Numbers(ctx, store)
	if err != nil {
		return nil, err
	}
	for i := len(gens) - 1; i >= 0; i-- {
		d, err := Load(ctx, store, gens[i])
		if errors.Is(err, ErrNone) {
			continue // a folder without its document yet
		}
		if err != nil {
			return nil, err
		}
		if d.Status == Ready {
			return d, nil
		}
	}
	return nil, ErrNone
}

// Next returns the document to build now: the unfinished generation if there
// is one (the resume of a build that died), else nil and the next free number.
func Next(ctx context.Context, store sink.Store) (*Doc, int64, error) {
	gens, err := Numbers(ctx, store)
	if err != nil || len(gens) == 0 {
		return nil, 1, err
	}
	last := gens[len(gens)-1]
	d, err := Load(ctx, store, last)
	if errors.Is(err, ErrNone) {
		return nil, last, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if d.Status == Building {
		return d, last, nil
	}
	return nil, last + 1, nil
}
