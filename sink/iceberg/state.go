package iceberg

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"giantstream/sink/vectordb"
)

// Keys of a snapshot's summary, for people and programs; docs/ICEBERG.md says what each holds.
const (
	keyState      = "giantstream.state"
	keyTopic      = "giantstream.topic"
	keyOffsets    = "giantstream.offsets"
	keyGeneration = "giantstream.generation"
	keySpace      = "giantstream.space"
)

// progressTag names the newest snapshot with a state.
const progressTag = "giantstream_progress"

// state is what a process needs to go on.
type state struct {
	Catalog  vectordb.Catalog          `json:"catalog"`
	Progress map[int]vectordb.Progress `json:"progress"`
	// Heads are the snapshots of the tables, by serial, but for that of the served one, which has the state.
	Heads map[int64]int64 `json:"heads"`
}

func (s state) clone() state {
	s.Catalog.Tables = slices.Clone(s.Catalog.Tables)
	s.Progress, s.Heads = maps.Clone(s.Progress), maps.Clone(s.Heads)
	return s
}

// ref is the branch of a table.
func (s state) ref(t vectordb.Table) string {
	if t.Serial == s.Catalog.Served { // both are 0 before anything is served
		return table.MainBranch
	}
	return t.Name("giantstream")
}

// large is the size from which a state is compressed.
const large = 4 << 10

const compressed = "gzip:"

// maxState bounds what a state may be unpacked to.
const maxState = 256 << 20

// summary returns the state as entries of a snapshot's summary.
func (s state) summary() (iceberg.Properties, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	props := iceberg.Properties{keyState: string(data), keyTopic: s.Catalog.Topic}
	if len(data) > large {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		props[keyState] = compressed + base64.StdEncoding.EncodeToString(b.Bytes())
	}
	var offsets []string
	for _, p := range slices.Sorted(maps.Keys(s.Progress)) {
		offsets = append(offsets, fmt.Sprintf("%d:%d", p, s.Progress[p].Next))
	}
	props[keyOffsets] = strings.Join(offsets, ",")
	for _, t := range s.Catalog.Tables {
		if t.Serial == s.Catalog.Served {
			props[keyGeneration], props[keySpace] = fmt.Sprint(t.Generation), fmt.Sprint(t.Space)
		}
	}
	return props, nil
}

// readState returns the state of a snapshot.
func readState(snapshot *table.Snapshot) (s state, err error) {
	text := ""
	if snapshot != nil && snapshot.Summary != nil {
		text = snapshot.Summary.Properties[keyState]
	}
	data := []byte(text)
	if packed, ok := strings.CutPrefix(text, compressed); ok {
		raw, err := base64.StdEncoding.DecodeString(packed)
		if err != nil {
			return s, fmt.Errorf("%s: %w", keyState, err)
		}
		r, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return s, fmt.Errorf("%s: %w", keyState, err)
		}
		if data, err = io.ReadAll(io.LimitReader(r, maxState)); err != nil {
			return s, fmt.Errorf("%s: %w", keyState, err)
		}
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w", keyState, err)
	}
	return s, nil
}
