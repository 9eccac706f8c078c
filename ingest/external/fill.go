package external

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/group"
	"giantstream/ingest/repartition"
	"giantstream/ingest/schema"
	"giantstream/internal/retry"
	"giantstream/stream/mutation"
)

// Name is that of the vectors.
const Name = "external"

// Mapping maps the records that Fill sends.
func Mapping(dimensions int) decode.AttributesMapping {
	return decode.AttributesMapping{ID: "id",
		Vectors: []decode.Vector{{Name: Name, Path: "vector", Length: dimensions, Precision: mutation.Float32}}}
}

// textHeader of a record has the hash of the text whose vector the record is.
const textHeader = "giantstream-text"

// FillOptions say what to fill, of what.
type FillOptions struct {
	Brokers *client.Client
	Model   *Client
	// From is the topic of nodes that shards read, To the one of vectors, with as many partitions.
	From, To string
	// Group is the consumer group that shares the partitions of From. What Fill has committed to it has its vectors in
	// To. Where the group stands elsewhere, since people move groups and brokers forget offsets, all of From is looked
	// at again: that asks for no vector that To has.
	Group, Protocol string
	SessionTimeout  time.Duration
	// Decoder returns a new decoder of the values of From; it is called for each partition.
	Decoder func() (*decode.Decoder, error)
	// Translator makes JSON of them; nil where they are JSON.
	Translator *schema.Translator
	// Cached counts the texts that had their vector already.
	Cached *atomic.Int64
	Log    *slog.Logger
}

// Fill sends the vectors of nodes' texts to a topic, until ctx ends or an error is final. It waits for brokers,
// registries and the model.
func Fill(ctx context.Context, o FillOptions) error {
	return group.Run(ctx, group.Options{Client: o.Brokers, WatchPartitions: true, Group: o.Group, Protocol: o.Protocol,
		Topics: []string{o.From}, SessionTimeout: o.SessionTimeout, Log: o.Log},
		func(ctx context.Context, a group.Assignment) error { return fillPartition(ctx, o, a) })
}

// Lag is repartition.Lag of the records of nodes for which no vector was asked yet.
func Lag(ctx context.Context, c *client.Client, from, group string,
	each func(group string, partition int, end, open int64)) error {
	return repartition.Lag(ctx, c, []repartition.Route{{From: from, Group: group, Positions: nothingKept{}}}, each)
}

// nothingKept remembers no position: what a group has committed that Fill has not says nothing.
type nothingKept struct{}

func (nothingKept) Copied(context.Context, int) (int64, error)   { return 0, nil }
func (nothingKept) NoteCopied(context.Context, int, int64) error { return nil }

// filler fills one partition.
type filler struct {
	FillOptions
	assignment group.Assignment
	decoder    *decode.Decoder
	producer   *client.Producer
	committed  int64 // offset that Fill has committed to the group, negative for none
	// uncommitted is one line a minute about commits that fail, not one for each fetch.
	uncommitted retry.Outage
	// sent has, by node, what the newest record in To says.
	sent map[string]said
	json []byte
	log  *slog.Logger
}

// said is what a record in To says: the vector of a text, or for the zero hash none.
type said struct {
	text [8]byte // of the text's SHA-256
	at   int64   // event time
}

// stated is what a record in From says of a node.
type stated struct {
	id, text string // "" of a node that is deleted or has none
	at       int64
	record   *kafka.Message
	vector   []float32
}

func fillPartition(ctx context.Context, o FillOptions, a group.Assignment) (err error) {
	f := &filler{FillOptions: o, assignment: a, producer: o.Brokers.NewProducer(), sent: map[string]said{},
		log: o.Log.With("topic", o.From, "partition", a.Shard)}
	defer func() {
		if closed := f.producer.Close(); err == nil {
			err = closed
		}
	}()
	if f.decoder, err = o.Decoder(); err != nil {
		return err
	}
	if err = f.recall(ctx); err != nil {
		return err
	}
	has, err := a.Committed(ctx, o.From)
	if err != nil {
		return err
	}
	f.committed = client.Oldest
	if has.Own {
		f.committed = has.Offset
	} else if has.Offset >= 0 {
		f.log.Warn("the consumer group stands where no worker has committed: a person has moved it; all texts are "+
			"looked at again", "group", o.Group, "group_offset", has.Offset)
	}
	in := client.Reader{Client: o.Brokers, Topic: o.From, Partition: a.Shard, Offset: f.committed,
		FollowRecreated: true, Log: f.log}
	if err = in.Run(ctx, f.fill); ctx.Err() == nil {
		err = fmt.Errorf("vectors of the texts of %s-%d: %w", o.From, a.Shard, err)
	}
	return err
}

var errRecalled = errors.New("all is read")

// recall reads which texts have their vectors in To, so that a worker that takes over asks for no text again.
func (f *filler) recall(ctx context.Context) error {
	ends, err := f.Brokers.EndOffsets(ctx, f.To)
	if err != nil {
		return err
	}
	if f.assignment.Shard >= len(ends[f.To]) {
		return fmt.Errorf("topic %s has no partition %d", f.To, f.assignment.Shard)
	}
	end := ends[f.To][f.assignment.Shard]
	in := client.Reader{Client: f.Brokers, Topic: f.To, Partition: f.assignment.Shard, Offset: client.Oldest,
		Log: f.log}
	reading, done := context.WithCancelCause(ctx)
	defer done(nil)
	err = in.Run(reading, func(_ context.Context, got client.Fetched) error {
		for i := range got.Records {
			f.recallOne(&got.Records[i])
		}
		if got.Next >= end {
			done(errRecalled)
		}
		return nil
	})
	if errors.Is(context.Cause(reading), errRecalled) {
		return nil
	}
	return err
}

func (f *filler) recallOne(m *kafka.Message) {
	var s said
	for _, h := range m.Headers {
		if h.Key == textHeader {
			// What is no hash is that of no text, which is asked for again.
			_, _ = hex.Decode(s.text[:], h.Value[:min(len(h.Value), hex.EncodedLen(len(s.text)))])
		}
	}
	if at, err := ingest.OverrideOf(m); err == nil && at != nil {
		s.at = *at
	}
	if before, ok := f.sent[string(m.Key)]; !ok || s.at >= before.at {
		f.sent[string(m.Key)] = s
	}
}

// fill sends the vectors of what one fetch gave, and commits. If it fails, the reader hands it the same records again.
func (f *filler) fill(ctx context.Context, got client.Fetched) error {
	open, err := f.open(ctx, got.Records)
	if err != nil {
		return err
	}
	if err := f.ask(ctx, open); err != nil {
		return err
	}
	for i := range open {
		if err := f.producer.Send(ctx, f.record(&open[i])); err != nil {
			return err
		}
	}
	if err := f.producer.Flush(ctx); err != nil {
		return err
	}
	for i := range open {
		f.sent[open[i].id] = said{hash(open[i].text), open[i].at}
	}
	if got.Next == f.committed {
		return nil
	}
	if err := f.assignment.CommitOffsets(map[string]int64{f.From: got.Next}); err != nil {
		if f.uncommitted.Failed(f.From, time.Now()) {
			f.log.Warn("how far vectors were asked for is not committed to the group; texts may be looked at again",
				"error", err)
		}
		return nil
	}
	f.uncommitted.EndFailure(f.From, time.Now())
	f.committed = got.Next
	return nil
}

// open returns what records say of nodes that To does not have: of each node the newest.
func (f *filler) open(ctx context.Context, records []kafka.Message) (open []stated, err error) {
	place := map[string]int{}
	var said []mutation.Mutation
	for i := range records {
		m := &records[i]
		if said, err = f.decode(ctx, m, said[:0]); err != nil {
			return nil, fmt.Errorf("offset %d: %w", m.Offset, err)
		}
		for k := range said {
			s := stated{id: said[k].ID, at: said[k].Version.EventTime, record: m}
			switch said[k].Op {
			case mutation.PutNode:
				s.text = said[k].Text
			case mutation.DeleteNode:
			default:
				continue
			}
			if p, ok := place[s.id]; !ok {
				place[s.id] = len(open)
				open = append(open, s)
			} else if s.at >= open[p].at {
				open[p] = s
			}
		}
	}
	return slices.DeleteFunc(open, f.has), nil
}

// has reports whether To has what a record says, or something newer.
func (f *filler) has(s stated) bool {
	sent, ok := f.sent[s.id]
	same := sent.text == hash(s.text)
	if same && s.text != "" {
		f.Cached.Add(1)
		if s.at > sent.at {
			f.sent[s.id] = said{sent.text, s.at}
		}
	}
	return same || ok && s.at < sent.at
}

// decode returns what a record says. What becomes a dead letter says nothing.
func (f *filler) decode(ctx context.Context, m *kafka.Message, dst []mutation.Mutation) ([]mutation.Mutation, error) {
	value := m.Value
	key, err := f.Translator.Key(ctx, m.Key)
	if err != nil {
		return dst, err
	}
	if f.Translator != nil {
		var fault *decode.Fault
		if value, fault, err = f.Translator.JSON(ctx, f.json[:0], m.Value); err != nil || fault != nil {
			return dst, err //nolint:nilerr // a fault is the record's, no failure of ours
		}
		if value != nil {
			f.json = value
		}
	}
	r := decode.Record{Key: key, Value: value, Time: m.Time, Partition: m.Partition, Offset: m.Offset}
	if r.Override, err = ingest.OverrideOf(m); err != nil {
		return dst, nil //nolint:nilerr // likewise
	}
	dst, _ = f.decoder.Decode(r, dst)
	return dst, nil
}

// ask gives the texts their vectors.
func (f *filler) ask(ctx context.Context, open []stated) error {
	var texts []string
	at := map[string]int{}
	for i := range open {
		if _, twice := at[open[i].text]; !twice && open[i].text != "" {
			at[open[i].text] = len(texts)
			texts = append(texts, open[i].text)
		}
	}
	vectors, err := f.Model.Embed(ctx, texts)
	if err != nil {
		return err
	}
	for i := range open {
		if open[i].text != "" {
			open[i].vector = vectors[at[open[i].text]]
		}
	}
	return nil
}

// record returns the record of a node's vector, with the version of the node's own record.
func (f *filler) record(s *stated) kafka.Message {
	value := []byte("{}")
	if s.vector != nil {
		value = append([]byte(`{"vector":"`), base64.StdEncoding.EncodeToString(numbers(s.vector))...)
		value = append(value, `"}`...)
	}
	h := hash(s.text)
	return kafka.Message{Topic: f.To, Key: []byte(s.id), Value: value, Time: s.record.Time,
		Headers: []kafka.Header{repartition.Origin(s.record),
			{Key: ingest.EventTimeHeader, Value: []byte(time.UnixMicro(s.at).UTC().Format(time.RFC3339Nano))},
			{Key: textHeader, Value: []byte(hex.EncodeToString(h[:]))}}}
}

// numbers are little-endian, as records and rows have them.
func numbers(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// hash is zero for no text, as for a node that To has nothing of.
func hash(text string) (h [8]byte) {
	if text != "" {
		sum := sha256.Sum256([]byte(text))
		copy(h[:], sum[:])
	}
	return h
}
