package backfill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"

	"github.com/segmentio/kafka-go"
)

// Options say what to send, and to which topics.
type Options struct {
	Client *client.Client
	Topics ingest.Topics
	Sources
	Mapping decode.Mapping
	Limits  decode.Limits
	// Checkpoint is the file that remembers what was sent; "" remembers nothing.
	Checkpoint string
	// Epoch identifies the topics. What was sent to other ones counts for nothing.
	Epoch string
	// Clock stamps dead letters.
	Clock func() time.Time
	// Snapshot says which inputs are whole, so that what they lack is deleted.
	Snapshot Snapshot
	// Progress receives the bytes read of all inputs; it may be nil.
	Progress Progress
}

// Sources are what is sent.
type Sources struct {
	// Nodes go to the nodes topic, then Edges to the edges topic.
	Nodes, Edges []Input
	// Attributes go to the topics of attributes, EdgeTopics to those of edges of one kind, and Orders to those of
	// orders, by name.
	Attributes, EdgeTopics, Orders map[string][]Input
}

// NonEmpty reports whether there are any.
func (s *Sources) NonEmpty() bool {
	return len(s.Nodes)+len(s.Edges)+len(s.Attributes)+len(s.EdgeTopics)+len(s.Orders) > 0
}

// Progress receives how far the backfill has come.
type Progress interface {
	// Stage begins a stage of total units (0: unknown) and ends the last one.
	Stage(name string, total int64)
	Add(n int64)
}

// Stats count what a backfill did.
type Stats struct {
	// Nodes and Edges are the records sent to each topic.
	Nodes int64 `json:"nodes"`
	Edges int64 `json:"edges"`
	// Attributes are those sent to topics of attributes.
	Attributes int64 `json:"attributes,omitempty"`
	// Orders are those sent to topics of orders.
	Orders int64 `json:"orders,omitempty"`
	// Oversize records became dead letters instead.
	Oversize int64 `json:"oversize"`
	// Resumed records were sent by an earlier run.
	Resumed int64 `json:"resumed"`
	// Stale records have the modification time of their file as event time, and a later version of
	// that file was sent before. They lose to what it said.
	Stale int64 `json:"stale,omitempty"`
	// BadRows are lines of CSV files that are no rows. They became dead letters instead.
	BadRows int64 `json:"bad_csv,omitempty"`
	// Skipped node records have no text, and were to be left out.
	Skipped int64 `json:"skipped_without_text,omitempty"`
	// MissingNodes and MissingEdges were deleted, because a snapshot lacks them.
	MissingNodes int64 `json:"missing_nodes,omitempty"`
	MissingEdges int64 `json:"missing_edges,omitempty"`
	// Idle are the files that sent nothing.
	Idle IdleFiles `json:"sent_nothing,omitzero"`
	// Fields say in how many of the records that were sent each mapped field has a value.
	Fields []decode.Filled `json:"fields,omitempty"`
	// Notes say how the first files were read, where they did not say it themselves.
	Notes []string `json:"notes,omitempty"`
	// StaleFiles are the first files with stale records, at most maxStaleFiles.
	StaleFiles []string `json:"stale_files,omitempty"`
}

// IdleFiles are files of which no record was sent.
type IdleFiles struct {
	Count int64 `json:"count"`
	// Files are the first ones, at most maxIdleFiles.
	Files []IdleFile `json:"files"`
}

// IdleFile is a file of which no record was sent, and why.
type IdleFile struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// maxStaleFiles, maxIdleFiles and maxNotes bound what is named.
const (
	maxStaleFiles = 10
	maxIdleFiles  = 10
	maxNotes      = 10
)

const (
	// sendRecords and arenaBytes bound what the producer gets at once.
	sendRecords = 1024
	arenaBytes  = 256 << 10
	// checkpointRecords is how often the checkpoint is written.
	checkpointRecords = 50_000
)

// Run sends the inputs. When it returns without an error, every record is acknowledged by the
// broker.
func Run(ctx context.Context, o Options) (Stats, error) {
	var stats Stats
	cp, err := openCheckpoint(o.Checkpoint, o.Mapping, o.Limits, o.Epoch)
	if err != nil {
		return stats, err
	}
	// The decoders only find keys here, so the number of shards does not matter.
	nodes, err := decode.Nodes(o.Mapping.Nodes, o.Limits, 1)
	if err != nil {
		return stats, err
	}
	edges, err := decode.Edges(o.Mapping.Edges, o.Limits, 1)
	if err != nil {
		return stats, err
	}
	if o.Progress == nil {
		o.Progress = discard{}
	}
	s := &sender{
		Options: o, checkpoint: cp, stats: &stats,
		producer: o.Client.NewProducer(),
		letters:  deadletter.NewWriter(o.Client, o.Topics.DeadLetters, o.Clock),
	}
	gone, err := s.findMissing(ctx)
	if err == nil {
		err = s.stage(ctx, "nodes", o.Nodes, target{
			topic: o.Topics.Nodes, decoder: nodes, sent: &stats.Nodes, columns: nodeColumns(&o.Mapping.Nodes),
		})
	}
	if err == nil {
		err = s.stage(ctx, "edges", o.Edges, target{
			topic: o.Topics.Edges, decoder: edges, sent: &stats.Edges, columns: edgeColumns(&o.Mapping.Edges),
		})
	}
	if err == nil {
		err = s.sendFurther(ctx)
	}
	if err == nil {
		err = s.retract(ctx, gone)
	}
	return stats, errors.Join(err, s.producer.Close(), s.letters.Close())
}

// sendFurther sends the files of topics beside those of nodes and edges.
func (s *sender) sendFurther(ctx context.Context) error {
	for _, topic := range slices.Sorted(maps.Keys(s.Attributes)) {
		m := s.Mapping.Attributes[topic]
		if err := s.sendTo(ctx, topic, s.Attributes[topic], attributeColumns(&m), &s.stats.Attributes); err != nil {
			return err
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(s.EdgeTopics)) {
		m := s.Mapping.EdgeTopics[topic]
		if err := s.sendTo(ctx, topic, s.EdgeTopics[topic], edgeColumns(&m), &s.stats.Edges); err != nil {
			return err
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(s.Orders)) {
		m := s.Mapping.Orders[topic]
		if err := s.sendTo(ctx, topic, s.Orders[topic], orderColumns(&m), &s.stats.Orders); err != nil {
			return err
		}
	}
	return nil
}

func (s *sender) sendTo(ctx context.Context, topic string, files []Input, columns columns, sent *int64) error {
	d, err := decode.Further(&s.Mapping, topic, s.Topics.NumberOf(topic), s.Limits, 1)
	if err != nil {
		return err
	}
	return s.stage(ctx, topic, files, target{topic: topic, decoder: d, sent: sent, columns: columns})
}

func pathsOf(attributes []decode.Attribute, vectors []decode.Vector) (paths []string) {
	for _, a := range attributes {
		paths = append(paths, a.Path)
	}
	for _, v := range vectors {
		paths = append(paths, v.Path)
	}
	return paths
}

type discard struct{}

func (discard) Stage(string, int64) {}
func (discard) Add(int64)           {}

// target is where a stage sends to.
type target struct {
	topic   string
	decoder *decode.Decoder
	columns columns
	sent    *int64
}

func nodeColumns(m *decode.NodeMapping) columns {
	var ends []string
	for _, e := range m.Edges {
		ends = append(ends, e.Path)
	}
	return columnsOf(m.EventTime, ends, slices.Concat(m.Text, []string{m.ID, m.Class}, decode.Paths(m.Deleted),
		pathsOf(m.Attributes, m.Vectors))...)
}

func edgeColumns(m *decode.EdgeMapping) columns {
	return columnsOf(m.EventTime, []string{m.Dst}, append(decode.Paths(m.Deleted), m.Src)...)
}

func attributeColumns(m *decode.AttributesMapping) columns {
	return columnsOf(m.EventTime, nil, append(pathsOf(m.Attributes, m.Vectors), m.ID)...)
}

func orderColumns(m *decode.OrderMapping) columns {
	kind := m.Kind
	if strings.HasPrefix(kind, `"`) {
		kind = "" // a constant
	}
	c := columnsOf(m.EventTime, []string{m.Items},
		append(slices.Concat(decode.Paths(m.Deleted), m.ID), m.Quantity, m.Time, kind, m.Customer)...)
	if name, _, nested := decode.FirstField(m.Quantity); name != "" && !nested {
		c.lists = append(c.lists, name)
	}
	return c
}

// columns are the columns of tables that matter.
type columns struct {
	// eventTime is a column in which numbers are numbers, where CSV has only strings.
	eventTime string
	// mapped are the names of all that a path begins with.
	mapped []string
	// lists are columns whose cells are lists: of the far ends of edges, and those with [*]. separator
	// splits them, see ReadOptions.
	lists     []string
	separator string
	// nested are columns that a path leads into.
	nested []string
	// any: a table that has none of the mapped columns is no error.
	any bool
}

// columnsOf returns the columns of a mapping. ends lead to the far ends of edges.
func columnsOf(eventTime string, ends []string, others ...string) columns {
	c := columns{eventTime: eventTime}
	for _, path := range slices.Concat(others, ends, []string{eventTime}) {
		name, list, nested := decode.FirstField(path)
		if name == "" {
			continue
		}
		if !slices.Contains(c.mapped, name) {
			c.mapped = append(c.mapped, name)
		}
		if list || slices.Contains(ends, path) && !nested {
			c.lists = append(c.lists, name)
		}
		if nested {
			c.nested = append(c.nested, name)
		}
	}
	return c
}

type sender struct {
	Options
	checkpoint *checkpoint
	stats      *Stats
	producer   *client.Producer
	letters    *deadletter.Writer

	batch []kafka.Message
	arena []byte

	older bool // of the input that is being sent, see progress
}

func (s *sender) stage(ctx context.Context, what string, inputs []Input, to target) error {
	if len(inputs) == 0 {
		return nil
	}
	var total int64
	for i := range inputs {
		total += inputs[i].Size
	}
	s.Progress.Stage("backfill "+what, total)
	tally := to.decoder.NewTally()
	to.decoder.CountInto(tally)
	for i := range inputs {
		before, sent := *s.stats, *to.sent
		if err := s.send(ctx, &inputs[i], to); err != nil {
			return fmt.Errorf("backfill of %s: %w", what, err)
		}
		if *to.sent == sent {
			s.stats.idle(inputs[i].Name, &before)
		}
	}
	s.stats.Fields = append(s.stats.Fields, tally.Fields(to.decoder)...)
	return nil
}

// idle notes that nothing was sent of a file, from what was counted before it.
func (st *Stats) idle(name string, before *Stats) {
	if st.Idle.Count++; len(st.Idle.Files) == maxIdleFiles {
		return
	}
	var why []string
	for _, part := range []struct {
		rows int64
		are  string
	}{{st.Resumed - before.Resumed, "read by an earlier run"}, {st.Skipped - before.Skipped, "left out without text"},
		{st.Oversize + st.BadRows - before.Oversize - before.BadRows, "dead letters"}} {
		if part.rows > 0 {
			why = append(why, fmt.Sprintf("%d %s", part.rows, part.are))
		}
	}
	if why == nil {
		why = []string{"no records"}
	}
	st.Idle.Files = append(st.Idle.Files, IdleFile{name, strings.Join(why, ", ")})
}

// send sends one input.
func (s *sender) send(ctx context.Context, in *Input, to target) (err error) {
	before, err := s.checkpoint.sent(ctx, to.topic, in)
	if err != nil {
		return err
	}
	if before.done {
		s.Progress.Add(in.Size)
		s.stats.Resumed += before.records
		return nil
	}
	s.older = before.older
	r, closer, err := in.open(ctx, s.Limits.RecordBytes, to.columns, s.Progress.Add)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	last, pending := progress{hash: before.hash}, 0
	for {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			for _, note := range r.describe().notes {
				if len(s.stats.Notes) < maxNotes {
					s.stats.Notes = append(s.stats.Notes, in.Name+": "+note)
				}
			}
			last.done = true
			return s.flush(ctx, in, to, last)
		}
		if err != nil {
			// What was read is good, and is sent.
			err = fmt.Errorf("%s, after line %d: %w", in.Name, last.line, err)
			if last.line < before.line {
				last = before
			}
			return errors.Join(err, s.flush(ctx, in, to, last))
		}
		last.line, last.records = rec.line, last.records+1
		if rec.line <= before.line {
			s.stats.Resumed++
			continue
		}
		if err := s.record(ctx, in, to, rec); err != nil {
			return fmt.Errorf("%s, line %d: %w", in.Name, rec.line, err)
		}
		if pending++; pending == checkpointRecords {
			pending = 0
			if err := s.flush(ctx, in, to, last); err != nil {
				return err
			}
		}
	}
}

func (s *sender) record(ctx context.Context, in *Input, to target, rec record) error {
	if rec.over != nil {
		s.stats.Oversize++
		return s.letters.Publish(ctx, deadletter.Letter{
			Origin:  deadletter.Origin{Topic: to.topic, File: in.Name, Line: rec.line},
			Code:    decode.RecordTooLarge,
			Message: fmt.Sprintf("the record has %d bytes; the limit is %d", rec.over.size, s.Limits.RecordBytes),
			Value:   append([]byte(nil), rec.value...), Size: rec.over.size, SHA256: rec.over.sha256,
			Time: in.Modified,
		})
	}
	if rec.bad != "" {
		s.stats.BadRows++
		return s.letters.Publish(ctx, deadletter.Letter{
			Origin: deadletter.Origin{Topic: to.topic, File: in.Name, Line: rec.line},
			Code:   decode.BadCSV, Message: rec.bad, Value: append([]byte(nil), rec.value...), Time: in.Modified,
		})
	}
	value := to.decoder.Enclose(rec.value)
	id, at, ok := to.decoder.Route(value)
	if ok && in.Read.SkipWithoutText && to.decoder.Textless() {
		s.stats.Skipped++
		to.decoder.Uncount()
		return nil
	}
	m := kafka.Message{Topic: to.topic, Value: s.keep(value)}
	if ok {
		m.Key = []byte(id)
	}
	if at.IsZero() {
		at = in.Modified
		s.stale(in)
	}
	m.Time = timestamp(at)
	s.batch = append(s.batch, m)
	*to.sent++
	if len(s.batch) == sendRecords {
		return s.sendBatch(ctx)
	}
	return nil
}

// stale counts a record that has the input's time.
func (s *sender) stale(in *Input) {
	if !s.older {
		return
	}
	s.stats.Stale++
	if len(s.stats.StaleFiles) < maxStaleFiles && !slices.Contains(s.stats.StaleFiles, in.Name) {
		s.stats.StaleFiles = append(s.stats.StaleFiles, in.Name)
	}
}

// timestamp makes a record timestamp. It is in milliseconds, and 0 would mean "now" to kafka-go.
func timestamp(t time.Time) time.Time {
	if t.UnixMilli() < 1 {
		return time.UnixMilli(1)
	}
	return t
}

// keep copies b to memory that does not change until the record is acknowledged.
func (s *sender) keep(b []byte) []byte {
	if len(b) > len(s.arena) {
		s.arena = make([]byte, max(arenaBytes, len(b)))
	}
	kept := s.arena[:len(b):len(b)]
	s.arena = s.arena[copy(kept, b):]
	return kept
}

func (s *sender) sendBatch(ctx context.Context) error {
	err := s.producer.Send(ctx, s.batch...)
	s.batch = s.batch[:0]
	return err
}

// flush waits until everything is acknowledged, then moves the checkpoint.
func (s *sender) flush(ctx context.Context, in *Input, to target, at progress) error {
	if err := s.sendBatch(ctx); err != nil {
		return err
	}
	if err := s.producer.Flush(ctx); err != nil {
		return err
	}
	if err := s.letters.Flush(ctx); err != nil {
		return err
	}
	return s.checkpoint.save(to.topic, in, at)
}
