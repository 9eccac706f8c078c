package vectordbtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
)

// Seen is a row as readers see it.
type Seen struct {
	Vector          string // as Literal writes it; "" for none
	Generation, Seq int64
	Attributes      string // as Show writes them; "" for none
}

// Attributes are those of the nodes of a Topic.
var Attributes = []vectordb.Attribute{{Name: "price", Type: vectordb.Number}, {Name: "Brand", Type: vectordb.String},
	{Name: "tags", Type: vectordb.Strings}, {Name: "sold", Type: vectordb.Boolean},
	{Name: "since", Type: vectordb.Time}}

// Show writes the values of Attributes.
func Show(values []any) (out string) {
	for i, v := range values {
		if at, ok := v.(time.Time); ok {
			v = at.UTC().Format(time.RFC3339Nano)
		}
		if v != nil {
			out += fmt.Sprintf(" %s=%#v", Attributes[i].Name, v)
		}
	}
	return out
}

// Literal writes a vector.
func Literal(v []float32) string {
	if len(v) == 0 {
		return ""
	}
	b := []byte{'['}
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return string(append(b, ']'))
}

// Object writes the values of Attributes as the topic has them, "" for none.
func Object(values []any) string {
	object := map[string]any{}
	for i, v := range values {
		if v != nil {
			object[Attributes[i].Name] = v
		}
	}
	if len(object) == 0 {
		return ""
	}
	b, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// ShowObject writes the values that an object has of Attributes, as Show does.
func ShowObject(object map[string]any) string {
	b, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	values, err := vectordb.Values(string(b), Attributes)
	if err != nil {
		return err.Error()
	}
	return Show(values)
}

// Topic is what a random pipeline publishes: every shard in the order of its manifests, from anywhere again after a
// crash, and all of its nodes when the generation changes.
type Topic struct {
	// Records by partition; offsets count from 0 without gaps.
	Records [][]vectordb.Record
	// Control: completions are announced.
	Control bool

	steady    bool // the generation stays
	rnd       *rand.Rand
	partition func(key string) int
	shards    []shard
	target    int64 // the generation that shards change to
	newest    int64 // that there ever was
	seq       int64
}

type shard struct {
	generation int64
	nodes      map[string]int64 // live ones, with their newest seq
	recent     []vectordb.Record
	attributes map[string][]any // of live ones
}

// NewTopic returns an empty topic. partition says where the records of a key go, nil for any rule.
func NewTopic(rnd *rand.Rand, partitions int, control bool, partition func(key string) int) *Topic {
	t := &Topic{Records: make([][]vectordb.Record, partitions), Control: control, rnd: rnd, partition: partition,
		shards: make([]shard, 1+rnd.IntN(3)), target: 1, newest: 1}
	if t.partition == nil {
		t.partition = func(key string) int { n, _ := strconv.Atoi(key[1:]); return n * 7 % partitions }
	}
	for s := range t.shards {
		t.shards[s].nodes, t.shards[s].attributes = map[string]int64{}, map[string][]any{}
		t.begin(s)
	}
	return t
}

// Grow publishes a little more.
func (t *Topic) Grow() {
	s := t.rnd.IntN(len(t.shards))
	switch at := &t.shards[s]; t.rnd.IntN(12) {
	case 0: // another generation, or back to an older one
		if t.settled() && !t.steady {
			if t.newest++; t.rnd.IntN(3) == 0 && t.target > 1 {
				t.newest--
				t.target -= 1 + t.rnd.Int64N(t.target-1)
			} else {
				t.target = t.newest
			}
		}
	case 1, 2:
		t.begin(s)
	case 3: // a publisher that has crashed repeats what it had sent since its cursor
		for _, r := range at.recent[t.rnd.IntN(len(at.recent)+1):] {
			t.send(r)
		}
	default:
		at.recent = nil
		for range 1 + t.rnd.IntN(20) {
			t.change(s)
		}
	}
}

// Settle brings all shards to one generation, announced if completions are.
func (t *Topic) Settle() {
	for s := range t.shards {
		t.begin(s)
	}
}

func (t *Topic) settled() bool {
	return !slices.ContainsFunc(t.shards, func(s shard) bool { return s.generation != t.target })
}

// begin publishes all of a shard with the target.
func (t *Topic) begin(s int) {
	at := &t.shards[s]
	at.recent = nil
	if at.generation != t.target {
		at.generation = t.target
		for _, id := range slices.Sorted(maps.Keys(at.nodes)) {
			t.publish(s, id, at.nodes[id])
		}
		for _, id := range slices.Sorted(maps.Keys(at.nodes)) {
			t.publishAttributes(s, id)
		}
	}
	if t.Control {
		for p := range t.Records {
			t.append(p, vectordb.Record{Completion: &embedding.Completion{Generation: at.generation,
				Space: at.generation, Shard: s, Shards: len(t.shards), Seq: t.seq}})
		}
	}
}

// change changes or deletes a node of a shard.
func (t *Topic) change(s int) {
	at := &t.shards[s]
	id := fmt.Sprintf("n%d", t.rnd.IntN(30)*len(t.shards)+s)
	t.seq++
	_, live := at.nodes[id]
	switch {
	case live && t.rnd.IntN(4) == 0:
		delete(at.nodes, id)
		delete(at.attributes, id)
		t.sendNew(s, vectordb.Record{Record: embedding.Record{NodeID: id, Generation: at.generation, Shard: s,
			Seq: t.seq, Deleted: true}})
	case live && t.rnd.IntN(2) == 0: // attributes alone
		at.attributes[id] = t.values()
	default:
		at.nodes[id], at.attributes[id] = t.seq, t.values()
		t.publish(s, id, t.seq)
	}
	t.publishAttributes(s, id)
}

// values are any attributes of a node.
func (t *Topic) values() []any {
	values := []any{float64(t.rnd.IntN(400)) / 4, fmt.Sprintf("\"b%d'", t.rnd.IntN(9)),
		[]string{"a", "b,{", ""}[:t.rnd.IntN(4)], t.rnd.IntN(2) == 0, time.UnixMicro(1e15 + t.rnd.Int64N(1e15)).UTC()}
	for i := range values {
		if t.rnd.IntN(3) == 0 {
			values[i] = nil
		}
	}
	return values
}

// publishAttributes sends the attributes of a node, if any.
func (t *Topic) publishAttributes(s int, id string) {
	r := vectordb.Record{OfAttributes: true, Values: t.shards[s].attributes[id]}
	r.NodeID = id
	if r.Values == nil {
		r.Values = make([]any, len(Attributes))
	}
	t.sendNew(s, r)
}

func (t *Topic) publish(s int, id string, seq int64) {
	g := t.shards[s].generation
	r := embedding.Record{NodeID: id, Generation: g, EventTime: 1e15 + seq, Shard: s, Seq: seq}
	if t.rnd.IntN(12) == 0 {
		r.Status = embedding.NoText
	} else {
		r.Vector = t.unit(4 + g%3)
	}
	t.sendNew(s, vectordb.Record{Record: r})
}

// unit draws a vector of length 1, as embeddings are: Qdrant makes others so.
func (t *Topic) unit(dim int64) []float32 {
	v, length := make([]float32, dim), 0.0
	for i := range v {
		v[i] = float32(1+t.rnd.IntN(64)) - 32.5
		length += float64(v[i] * v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(length))
	}
	return v
}

// sendNew sends a record that a shard has not sent before.
func (t *Topic) sendNew(s int, r vectordb.Record) {
	t.shards[s].recent = append(t.shards[s].recent, r)
	t.send(r)
}

func (t *Topic) send(r vectordb.Record) { t.append(t.partition(r.NodeID), r) }

func (t *Topic) append(p int, r vectordb.Record) {
	r.Offset = int64(len(t.Records[p]))
	t.Records[p] = append(t.Records[p], r)
}

// Ends returns where the partitions end.
func (t *Topic) Ends() []int64 {
	out := make([]int64, len(t.Records))
	for p, records := range t.Records {
		out[p] = int64(len(records))
	}
	return out
}

// Compacted returns what is left of the topic after compaction, as target shows it, and the generations in it.
func (t *Topic) Compacted(target Target) (rows map[string]Seen, generations map[int64]bool) {
	rows, generations = map[string]Seen{}, map[int64]bool{}
	for _, records := range t.Records {
		newest, attributes := map[string]vectordb.Record{}, map[string]string{}
		for _, r := range records {
			switch {
			case r.OfAttributes && target.Attributes:
				attributes[r.NodeID] = Show(r.Values)
			case r.Completion == nil && !r.OfAttributes:
				newest[r.NodeID] = r
			}
		}
		for id, r := range newest {
			if r.Deleted {
				continue
			}
			generations[r.Generation] = true
			if len(r.Vector) > 0 || target.Vectorless {
				rows[id] = Seen{Literal(r.Vector), r.Generation, r.Seq, attributes[id]}
			}
		}
	}
	return rows, generations
}

// Differ describes the first differences of what is seen from what should be.
func Differ(got, want map[string]Seen) string {
	var out string
	ids := slices.Sorted(maps.Keys(want))
	for id := range got {
		if _, ok := want[id]; !ok {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if got[id] != want[id] {
			out += fmt.Sprintf("%s: got %+v, want %+v\n", id, got[id], want[id])
		}
	}
	return out[:min(len(out), 2000)]
}

// Mixed describes rows of several generations, "" if there are none.
func Mixed(rows map[string]Seen) string {
	of := map[int64]string{}
	for id, r := range rows {
		of[r.Generation] = cmp.Or(of[r.Generation], id)
	}
	if len(of) < 2 {
		return ""
	}
	return fmt.Sprintf("readers see several generations at once, such as these nodes': %v", of)
}
