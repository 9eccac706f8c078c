package iceberg

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
	"giantstream/sink/vectordb"
)

// Fields of a table of rows. The list is the last one, as in a table of embeddings.
const (
	_ = fieldNodeID + iota
	fieldText
	fieldClass
	fieldRowEventTime
	fieldRowShard
	fieldRowSeq
	fieldLabels
	fieldLabel
	fieldLinkEnds
	fieldLinkEnd
	fieldLinkKinds
	fieldLinkKind
	fieldLinkWeights
	fieldLinkWeight
	fieldLinkTimes
	fieldLinkTime
)

// RowSchema is that of a table of rows. Columns that a release has added are optional: tables get them when they are
// opened, and their older rows have none.
func RowSchema() *iceberg.Schema {
	p := iceberg.PrimitiveTypes
	link := func(id int, name string, element iceberg.Type, doc string) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Doc: doc,
			Type: &iceberg.ListType{ElementID: id + 1, Element: element, ElementRequired: true}}
	}
	return iceberg.NewSchemaWithIdentifiers(0, []int{fieldNodeID},
		iceberg.NestedField{ID: fieldNodeID, Name: rows.ColNodeID, Type: p.String, Required: true},
		iceberg.NestedField{ID: fieldText, Name: rows.ColText, Type: p.String, Required: true},
		iceberg.NestedField{ID: fieldClass, Name: rows.ColClass, Type: p.String, Doc: "for evaluation only"},
		iceberg.NestedField{ID: fieldRowEventTime, Name: rows.ColEventTime, Type: p.TimestampTz, Required: true},
		iceberg.NestedField{ID: fieldRowShard, Name: "shard", Type: p.Int32, Required: true},
		iceberg.NestedField{ID: fieldRowSeq, Name: "seq", Type: p.Int64, Required: true,
			Doc: "the manifest of the shard; the version of the row"},
		iceberg.NestedField{ID: fieldLabels, Name: rows.ColLabels, Required: true,
			Type: &iceberg.ListType{ElementID: fieldLabel, Element: p.String, ElementRequired: true},
			Doc:  "the ids of the neighbours"},
		link(fieldLinkEnds, rows.ColLinkEnds, p.String, "those of the labels whose link has a kind or a weight"),
		link(fieldLinkKinds, rows.ColLinkKinds, p.String, "of these links; empty for none"),
		link(fieldLinkWeights, rows.ColLinkWeights, p.Float32, "of these links"),
		link(fieldLinkTimes, rows.ColLinkTimes, p.TimestampTz, "event times of these links"),
	)
}

// fact is a row of a data file; the numbers are those of RowSchema.
type fact struct {
	NodeID    string   `parquet:"node_id,id(1)"`
	Text      string   `parquet:"text,id(2)"`
	Class     string   `parquet:"class,optional,dict,id(3)"`
	EventTime int64    `parquet:"event_time,timestamp(microsecond),id(4)"`
	Shard     int32    `parquet:"shard,id(5)"`
	Seq       int64    `parquet:"seq,id(6)"`
	Labels    []string `parquet:"labels,list,id(7)" parquet-element:",id(8)"`

	LinkEnds    []string  `parquet:"link_ends,list,id(9)" parquet-element:",id(10)"`
	LinkKinds   []string  `parquet:"link_kinds,list,id(11)" parquet-element:",dict,id(12)"`
	LinkWeights []float32 `parquet:"link_weights,list,id(13)" parquet-element:",id(14)"`
	LinkTimes   []int64   `parquet:"link_times,list,id(15)" parquet-element:",timestamp(microsecond),id(16)"`
}

var factFormat = parquetio.Format[fact]{Name: "iceberg-rows/1", Unbounded: []string{rows.ColText},
	Size:       func(r *fact) int { return 40 + r.bytes() },
	Generation: func(*fact) int64 { return 0 }}

// bytes estimates the raw bytes of the row's columns of varying length.
func (r *fact) bytes() int {
	n := len(r.NodeID) + len(r.Text) + len(r.Class)
	for _, l := range r.Labels {
		n += 4 + len(l)
	}
	for i, end := range r.LinkEnds {
		n += 20 + len(end) + len(r.LinkKinds[i])
	}
	return n
}

// Catalogs number the columns of a new table anew, those of elements last, so that only one list can be among them.
var facts = &kind{schema: RowSchema, added: 4, comment: "rows of giantstream; written by giantstream-iceberg alone",
	source: "the commit log", version: "seq", format: factFormat.Name, summary: summarizeLog, put: putter(factFormat)}

// Keys of a snapshot's summary; docs/ICEBERG.md says what each holds.
const (
	keyPipeline  = "giantstream.pipeline"
	keyManifests = "giantstream.manifests"
)

func summarizeLog(s state) iceberg.Properties {
	if s.Catalog.Served != s.Catalog.Serial {
		return iceberg.Properties{keyPipeline: s.Catalog.Topic} // main is not what is filled
	}
	var manifests, offsets []string
	for _, shard := range slices.Sorted(maps.Keys(s.Progress)) {
		manifests = append(manifests, fmt.Sprintf("%d:%d", shard, s.Progress[shard].Next-1))
		for _, topic := range slices.Sorted(maps.Keys(s.Inputs[shard])) {
			offsets = append(offsets, fmt.Sprintf("%s/%d:%d", topic, shard, s.Inputs[shard][topic]))
		}
	}
	return iceberg.Properties{keyPipeline: s.Catalog.Topic, keyManifests: strings.Join(manifests, ","),
		keyOffsets: strings.Join(offsets, ",")}
}

// Rows keeps a table of Apache Iceberg equal to the newest rows of a pipeline's commit log: what is committed is a cut
// of the log, and the rows of deleted nodes are left out. It is a stream/rowtable.Table. Not for concurrent use.
type Rows struct {
	x *Index
	// open is the shard of which a window was begun and not ended, -1 for none.
	open int
}

// NewRows returns a table, which connects when it is opened.
func NewRows(o Options) *Rows { return &Rows{x: newIndex(o, facts), open: -1} }

// Open takes the table over from any other process and returns, for each shard, the newest manifest that it has. With
// again, and for the rows of the pipeline that this one continues, all of them are 0: a new branch is filled from the
// beginning of the log, and readers see the rows that there are until Serve. The rows of another pipeline are
// vectordb.ErrOwner.
func (r *Rows) Open(ctx context.Context, pipeline, id, continues string, shards int, again bool) ([]int64, error) {
	x := r.x
	saved, err := x.Open(ctx)
	if err != nil {
		return nil, err
	}
	r.open = -1
	c := saved.Catalog
	if c.TopicID != "" && c.TopicID != id && c.TopicID != continues && !again {
		return nil, fmt.Errorf("%w: the table has the rows of pipeline %s (id %s), and the store is of pipeline %s "+
			"(id %s). Name another table (sinks.iceberg.rows), or fill this one again with --refill", vectordb.ErrOwner,
			c.Topic, c.TopicID, pipeline, id)
	}
	if again || len(c.Tables) == 0 || c.TopicID != id || c.Partitions != shards {
		c.Tables = slices.DeleteFunc(c.Tables, func(t vectordb.Table) bool { return t.Serial != c.Served })
		c.Serial++
		c.Tables = append(c.Tables, vectordb.Table{Serial: c.Serial})
		c.TopicID, c.Partitions = id, shards
		x.next.Progress, x.next.Inputs = map[int]vectordb.Progress{}, nil
	}
	c.Topic = pipeline
	if err := x.Save(ctx, c); err != nil {
		return nil, err
	}
	newest := make([]int64, shards)
	for shard, p := range x.next.Progress {
		newest[shard] = max(0, p.Next-1)
	}
	return newest, nil
}

// filling returns the serial of the branch that rows go to.
func (r *Rows) filling() int64 { return r.x.next.Catalog.Serial }

// Apply takes the rows of the windows of a shard after those that the table has, up to manifest seq. Of a node, later
// rows replace earlier ones. inputs are the offsets that the manifest has consumed, nil if they are not known. After an
// error the same shard has to be applied first, from the same manifest on.
func (r *Rows) Apply(ctx context.Context, shard int, seq int64, inputs map[string]int64,
	all iter.Seq2[rows.Committed, error]) error {
	x := r.x
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case r.open >= 0 && r.open != shard:
		return fmt.Errorf("%w: rows of shard %d come in the midst of a window of shard %d", vectordb.ErrRefused, shard,
			r.open)
	case r.open < 0 && (x.pending != nil || x.staged != nil || x.size >= x.opts.Bytes):
		if err := x.flush(ctx); err != nil {
			return err
		}
	}
	r.open = shard
	for row, err := range all {
		if err != nil {
			return err
		}
		x.hold(r.filling(), factOf(&row, shard))
		if x.size < x.opts.Bytes {
			continue
		}
		if err := x.stage(ctx, r.filling()); err != nil {
			return err
		}
	}
	r.open = -1
	x.next.Progress[shard] = vectordb.Progress{Next: seq + 1}
	if x.next.Inputs == nil {
		x.next.Inputs = map[int]map[string]int64{}
	}
	x.next.Inputs[shard] = inputs
	x.touch()
	return nil
}

func factOf(row *rows.Committed, shard int) *change {
	c := &change{node: row.NodeID, version: row.Seq, deleted: row.Deleted}
	if row.Deleted {
		return c // it counts for nothing, since it cannot be staged; a block of the log bounds how many there are
	}
	f := &fact{NodeID: row.NodeID, Text: row.Text, Class: row.Class, EventTime: row.EventTime, Shard: int32(shard),
		Seq: row.Seq, Labels: row.Labels, LinkEnds: row.LinkEnds, LinkKinds: row.LinkKinds,
		LinkWeights: row.LinkWeights, LinkTimes: row.LinkTimes}
	c.row, c.bytes = f, int64(f.bytes()+16*len(f.Labels)+32*len(f.LinkEnds)+300)
	return c
}

// Serve leads readers to the rows that were applied, all at once.
func (r *Rows) Serve(ctx context.Context) error {
	c := r.x.next.clone().Catalog
	old := c.Served
	c.Served = c.Serial
	c.Tables = slices.DeleteFunc(c.Tables, func(t vectordb.Table) bool { return t.Serial != c.Served })
	if err := r.x.Save(ctx, c); err != nil || old == c.Served {
		return err
	}
	return r.x.Drop(ctx, vectordb.Table{Serial: old})
}

// Flush commits what was applied, or only what has waited for long enough.
func (r *Rows) Flush(ctx context.Context, all bool) error {
	if r.open >= 0 {
		return nil // what is held is no cut of the log
	}
	return r.x.Flush(ctx, all || r.x.staged != nil || r.x.size >= r.x.opts.Bytes)
}
