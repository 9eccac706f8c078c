package wiring

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/config"
	"giantstream/featurize/tfidf"
	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/internal/artifact"
	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/forget"
)

// TopicRecords are the records of a cluster's topics. It implements forget.Topics.
type TopicRecords struct{ *client.Client }

// Partitions implements forget.Topics.
func (t TopicRecords) Partitions(ctx context.Context, topic string) (int, error) {
	ends, err := t.LogEndOffsets(ctx, topic)
	if errors.Is(err, client.ErrNoTopic) {
		return 0, nil
	}
	return len(ends[topic]), err
}

// Records implements forget.Topics.
func (t TopicRecords) Records(ctx context.Context, topic string, partition int) iter.Seq2[forget.Record, error] {
	return func(yield func(forget.Record, error) bool) {
		first, err := t.FirstOffsets(ctx, topic)
		if err != nil {
			yield(forget.Record{}, err)
			return
		}
		ends, err := t.EndOffsets(ctx, topic)
		if err != nil {
			yield(forget.Record{}, err)
			return
		}
		for m, err := range t.Range(ctx, topic, partition, first[topic][partition], ends[topic][partition]) {
			r := forget.Record{Offset: m.Offset, Key: m.Key, Value: m.Value}
			for _, h := range m.Headers {
				r.Headers = append(r.Headers, []byte(h.Key), h.Value)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// ScannedTopics are the topics that a pipeline writes, by what they hold, and those that it reads.
func ScannedTopics(cfg *config.Config) (topics [][2]string) {
	t := TopicsOf(cfg)
	all := [][2]string{{t.Embeddings, "embeddings topic"}, {t.Canary, "canary topic"},
		{t.DeadLetters, "dead letters"}, {t.Mirror, "mirror topic"}, {t.Ordered, "topic of rows of orders"}}
	for _, topic := range t.Given() {
		if t.Copied(topic) {
			all = append(all, [2]string{topic, "copy of an input"})
		}
		if topic == t.External {
			all = append(all, [2]string{topic, "vectors of the external model"})
			continue
		}
		all = append(all, [2]string{t.Source(topic), "input"})
	}
	for _, topic := range all {
		if topic[0] != "" {
			topics = append(topics, topic)
		}
	}
	return topics
}

// ScannedFolders are the folders on this machine that a pipeline's workers write to, by what they hold.
func ScannedFolders(cfg *config.Config) (folders [][2]string) {
	folders = [][2]string{{cfg.StateDir, "local state"}}
	if cfg.Kafka.Embedded() {
		folders = append(folders, [2]string{cfg.Kafka.DataDir, forget.BrokerLog})
	}
	return folders
}

// KeysOfFolders returns the prefixes of keys under which a store in a directory would list files of the folders.
func KeysOfFolders(store string, folders [][2]string) (prefixes []string, err error) {
	root, ok := StoreDir(store)
	if !ok {
		return nil, nil
	}
	if root, err = realPath(root); err != nil {
		return nil, err
	}
	for _, folder := range folders {
		dir, err := realPath(folder[0])
		if err != nil {
			return nil, err
		}
		if inside, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(inside) {
			prefixes = append(prefixes, filepath.ToSlash(inside)+"/")
		}
	}
	return prefixes, nil
}

// realPath follows the links of a path, if it exists.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	return path, nil
}

// Vocabularies knows which n-grams only forgotten texts have. It implements forget.Vocabulary.
type Vocabularies struct{ owned []*tfidf.Owned }

// OpenVocabularies reads the newest rows of a store, whose texts are those of the nodes that stay.
func OpenVocabularies(ctx context.Context, store sink.Store, shards int, texts []string, forgotten map[string]bool) (
	*Vocabularies, error) {
	v := &Vocabularies{}
	for _, opt := range []tfidf.Options{tfidf.DefaultOptions(), tfidf.PECOSOptions()} {
		owned, err := tfidf.NewOwned(opt, texts)
		if errors.Is(err, tfidf.ErrNoText) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v.owned = append(v.owned, owned)
	}
	if len(v.owned) == 0 {
		return v, nil
	}
	cut, err := commitlog.CurrentCut(ctx, store, shards)
	if err != nil {
		return nil, err
	}
	for p := range cut {
		for row, err := range cut.Facts(ctx, store, p) {
			if err != nil {
				return nil, err
			}
			if forgotten[row.NodeID] || row.Text == "" {
				continue
			}
			for _, owned := range v.owned {
				owned.Share(row.Text)
			}
		}
	}
	return v, nil
}

// Owned implements forget.Vocabulary.
func (v *Vocabularies) Owned(r io.Reader) (ngrams []string, ok bool, err error) {
	model, err := tfidf.Read(r)
	if errors.Is(err, artifact.ErrUnknown) || errors.Is(err, artifact.ErrCorrupt) {
		return nil, false, nil // it is searched as bytes
	}
	if err != nil {
		return nil, false, err
	}
	for _, owned := range v.owned {
		ngrams = append(ngrams, owned.NGramsOf(model)...)
	}
	return ngrams, true, nil
}

// Deletions returns records that delete nodes and all links from and to them, in the form of the mapping. They win over
// everything that the store has of these.
func Deletions(cfg *config.Config, ids map[string]bool, known forget.Known, now time.Time) ([]kafka.Message, error) {
	mapping, _ := MappingOf(cfg)
	topics := TopicsOf(cfg)
	if last := time.UnixMicro(known.EventTime); now.Before(last) {
		now = last
	}
	r := deletions{at: []kafka.Header{{Key: ingest.EventTimeHeader,
		Value: []byte(now.UTC().Format(time.RFC3339Nano))}}}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if len(mapping.Nodes.Edges) > 0 { // what its own records say of links stays in force beyond its deletion
			value, err := mapping.Nodes.Linkless(id)
			r.add(topics.Nodes, id, value, err)
		}
		value, err := mapping.Nodes.Deletion(id)
		r.add(topics.Nodes, id, value, err)
		value, err = mapping.Edges.Clear(id)
		r.add(topics.Edges, id, value, err)
		for _, topic := range topics.Further {
			if topic != topics.Orders && !slices.Contains(topics.OneKind, topic) { // of attributes, by the node's id
				r.add(topic, id, nil, nil)
			}
		}
		for _, l := range known.Own[id] { // nothing takes back all edges that a topic of one kind states of a node
			if topic, of := EdgesOf(cfg, l.Kind); slices.Contains(topics.OneKind, topic) {
				value, err := of.Deletion(id, l.To, l.Kind)
				r.add(topic, id, value, err)
			}
		}
	}
	for _, from := range slices.Sorted(maps.Keys(known.Links)) {
		for _, l := range known.Links[from] {
			topic, of := EdgesOf(cfg, l.Kind)
			value, err := of.Deletion(from, l.To, l.Kind)
			r.add(topic, from, value, err)
		}
	}
	return r.messages, r.err
}

// deletions are records with one event time.
type deletions struct {
	at       []kafka.Header
	messages []kafka.Message
	err      error // the first
}

// add adds a record, unless its value could not be made.
func (d *deletions) add(topic, key string, value []byte, err error) {
	d.err = cmp.Or(d.err, err)
	d.messages = append(d.messages, kafka.Message{Topic: topic, Key: []byte(key), Value: value, Headers: d.at})
}
