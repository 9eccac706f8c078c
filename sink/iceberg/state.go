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

	"github.com/apache/iceberg-go/table"

	"giantstream/sink/vectordb"
)

// keyState is the key of the state in a snapshot's summary. The keys beside it are for people and other programs.
const keyState = "giantstream.state"

// progressTag names the newest snapshot with a state.
const progressTag = "giantstream_progress"

// state is what a process needs to go on.
type state struct {
	Catalog  vectordb.Catalog          `json:"catalog"`
	Progress map[int]vectordb.Progress `json:"progress"`
	// Heads are the snapshots of the tables, by serial, but for that of the served one, which has the state.
	Heads map[int64]int64 `json:"heads"`
	// Inputs are, in a table of rows, the offsets of each shard's input topics; nil for a shard without known ones.
	Inputs map[int]map[string]int64 `json:"inputs,omitempty"`
}

func (s state) clone() state {
	s.Catalog.Tables = slices.Clone(s.Catalog.Tables)
	s.Progress, s.Heads, s.Inputs = maps.Clone(s.Progress), maps.Clone(s.Heads), maps.Clone(s.Inputs)
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

// encode returns the state as the entry keyState of a snapshot's summary.
func (s state) encode() (string, error) {
	data, err := json.Marshal(s)
	if err != nil || len(data) <= large {
		return string(data), err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return compressed + base64.StdEncoding.EncodeToString(b.Bytes()), nil
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
