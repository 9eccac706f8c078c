package opensearch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/internal/rest"
)

// Options of an index.
type Options struct {
	URL, Username, Password string
	// TLS is nil for the system's certificates.
	TLS *tls.Config
	// Name of the alias, and prefix of the indexes: a-z, 0-9 and _.
	Name string
	// Attributes are fields of the documents.
	Attributes []vectordb.Attribute
}

// Index is a vectordb.Index in OpenSearch.
type Index struct {
	name    string
	session string
	c       *rest.Client

	attributes []vectordb.Attribute
}

// maxID is OpenSearch's own bound of a document's id, in bytes.
const maxID = 512

// catalogID is the document of the catalog.
const catalogID = "catalog"

// New returns an index, which connects when it is opened.
func New(o Options) *Index {
	header := http.Header{}
	if o.Username != "" {
		r := http.Request{Header: header}
		r.SetBasicAuth(o.Username, o.Password)
	}
	return &Index{name: o.Name, session: rand.Text(), c: rest.New(o.URL, header, o.TLS), attributes: o.Attributes}
}

// Close implements vectordb.Index.
func (x *Index) Close() error {
	x.c.Close()
	return nil
}

// Check implements vectordb.Index.
func (x *Index) Check(nodeID string) error {
	if len(nodeID) > maxID {
		return fmt.Errorf("its id has %d bytes; OpenSearch takes %d", len(nodeID), maxID)
	}
	return nil
}

type object = map[string]any

// sinkIndex returns the path of the index that holds the sink's own documents.
func (x *Index) sinkIndex() string { return "/" + x.name + "_sink" }

func writeAlias(index string) string { return index + "_W" }

// catalogDocument is the catalog as it is stored. Objects stand in strings, which no mapping looks into.
type catalogDocument struct {
	Session  string `json:"session"`
	Document string `json:"document"`
}

// stored is a document as the server returns it.
type stored[T any] struct {
	ID     string `json:"_id"`
	Found  bool   `json:"found"`
	SeqNo  int64  `json:"_seq_no"`
	Term   int64  `json:"_primary_term"`
	Source T      `json:"_source"`
}

// Open implements vectordb.Index.
func (x *Index) Open(ctx context.Context) (vectordb.Saved, error) {
	saved := vectordb.Saved{Progress: map[int]vectordb.Progress{}}
	if err := x.preflight(ctx); err != nil {
		return saved, err
	}
	// Nobody searches what is stored here.
	err := x.create(ctx, x.name+"_sink", object{"mappings": object{"dynamic": false}})
	if err != nil {
		return saved, err
	}
	at, err := x.catalog(ctx)
	if err != nil {
		return saved, err
	}
	at.Source.Session = x.session
	at.Source.Document = cmp.Or(at.Source.Document, "{}")
	if err := x.put(ctx, at); err != nil {
		return saved, err
	}
	if err := json.Unmarshal([]byte(at.Source.Document), &saved.Catalog); err != nil {
		return saved, fmt.Errorf("%w: the catalog in %s_sink: %w", vectordb.ErrRefused, x.name, err)
	}
	if saved.Catalog.Partitions == 0 {
		return saved, nil
	}
	ids := make([]string, saved.Catalog.Partitions)
	for p := range ids {
		ids[p] = progressID(p)
	}
	var answer struct {
		Docs []stored[struct {
			Partition int    `json:"partition"`
			Document  string `json:"document"`
		}] `json:"docs"`
	}
	if err := x.c.Do(ctx, http.MethodPost, x.sinkIndex()+"/_mget", object{"ids": ids}, &answer); err != nil {
		return saved, err
	}
	for _, d := range answer.Docs {
		if !d.Found {
			continue
		}
		var p vectordb.Progress
		if err := json.Unmarshal([]byte(d.Source.Document), &p); err != nil {
			return saved, fmt.Errorf("%w: document %s of %s_sink: %w", vectordb.ErrRefused, d.ID, x.name, err)
		}
		saved.Progress[d.Source.Partition] = p
	}
	return saved, nil
}

func progressID(partition int) string { return fmt.Sprintf("partition-%d", partition) }

// preflight makes sure that the server is OpenSearch with k-NN.
func (x *Index) preflight(ctx context.Context) error {
	var about struct {
		Version struct {
			Distribution string `json:"distribution"`
			Number       string `json:"number"`
		} `json:"version"`
	}
	if err := x.c.Do(ctx, http.MethodGet, "/", nil, &about); err != nil {
		return err
	}
	if about.Version.Distribution != "opensearch" {
		return fmt.Errorf("%w: the server calls itself %q %s, and is no OpenSearch", vectordb.ErrRefused,
			about.Version.Distribution, about.Version.Number)
	}
	var plugins []struct {
		Component string `json:"component"`
	}
	if err := x.c.Do(ctx, http.MethodGet, "/_cat/plugins?format=json", nil, &plugins); err != nil {
		return err
	}
	for _, p := range plugins {
		if p.Component == "opensearch-knn" {
			return nil
		}
	}
	return fmt.Errorf("%w: OpenSearch %s has no plugin opensearch-knn, which the full distribution brings",
		vectordb.ErrRefused, about.Version.Number)
}

// create makes an index unless it exists.
func (x *Index) create(ctx context.Context, name string, body object) error {
	err := x.c.Do(ctx, http.MethodHead, "/"+name, nil, nil)
	if rest.Status(err) != http.StatusNotFound {
		return err
	}
	err = x.c.Do(ctx, http.MethodPut, "/"+name, body, nil)
	if e, ok := errors.AsType[*rest.Error](err); ok && strings.Contains(e.Body, "resource_already_exists_exception") {
		return nil // another attempt was first
	}
	return err
}

// catalog reads the document of the catalog, which is not Found at first.
func (x *Index) catalog(ctx context.Context) (at stored[catalogDocument], err error) {
	err = x.c.Do(ctx, http.MethodGet, x.sinkIndex()+"/_doc/"+catalogID, nil, &at)
	if rest.Status(err) == http.StatusNotFound && strings.Contains(err.Error(), `"found":false`) {
		err = nil
	}
	return at, err
}

// put replaces the catalog as it was read. If another process was faster, the error is one that is tried again, and the
// next reading tells.
func (x *Index) put(ctx context.Context, at stored[catalogDocument]) error {
	condition := "op_type=create"
	if at.Found {
		condition = fmt.Sprintf("if_seq_no=%d&if_primary_term=%d", at.SeqNo, at.Term)
	}
	return x.c.Do(ctx, http.MethodPut, x.sinkIndex()+"/_doc/"+catalogID+"?"+condition, at.Source, nil)
}

// readOwnCatalog returns the catalog. The error is ErrTakenOver if another process has opened the sink.
func (x *Index) readOwnCatalog(ctx context.Context) (stored[catalogDocument], error) {
	at, err := x.catalog(ctx)
	if err == nil && at.Source.Session != x.session {
		err = vectordb.ErrTakenOver
	}
	return at, err
}

// Save implements vectordb.Index.
func (x *Index) Save(ctx context.Context, c vectordb.Catalog) error {
	document, err := json.Marshal(c)
	if err != nil {
		return err
	}
	at, err := x.readOwnCatalog(ctx)
	if err != nil {
		return err
	}
	at.Source.Document = string(document)
	return x.put(ctx, at)
}

// Create implements vectordb.Index.
func (x *Index) Create(ctx context.Context, t vectordb.Table) error {
	if t.Dim == 0 {
		return nil // there is nothing to put in yet
	}
	if _, err := x.readOwnCatalog(ctx); err != nil {
		return err
	}
	name := t.Name(x.name)
	number := object{"type": "long"}
	err := x.create(ctx, name, object{
		"settings": object{"index": object{"knn": true, "gc_deletes": "24h", "refresh_interval": "30s"}},
		"mappings": object{"dynamic": false, "properties": object{
			"embedding": object{"type": "knn_vector", "dimension": t.Dim, "method": object{"name": "hnsw",
				"engine": "lucene", "space_type": "cosinesimil"}},
			"node_id": object{"type": "keyword"}, "status": object{"type": "keyword"}, "generation": number,
			"space": number, "shard": number, "seq": number, "event_time": number}}})
	if err == nil {
		err = x.mapAttributes(ctx, name)
	}
	if err != nil {
		return err
	}
	return x.c.Do(ctx, http.MethodPost, "/_aliases", object{"actions": []object{
		{"add": object{"index": name, "alias": writeAlias(name)}}}}, nil)
}

// document is a node as it is stored.
type document struct {
	NodeID     string    `json:"node_id"`
	Embedding  []float32 `json:"embedding"`
	Generation int64     `json:"generation"`
	Space      int64     `json:"space"`
	Status     string    `json:"status"`
	EventTime  int64     `json:"event_time"` // microseconds since the Unix epoch
	Shard      int       `json:"shard"`
	Seq        int64     `json:"seq"`
	// Offset is that of the embedding.
	Offset int64 `json:"topic_offset"`
}

func documentOf(r vectordb.Record) document {
	status := string(r.Status)
	if r.Status == embedding.FromText {
		status = "text"
	}
	return document{r.NodeID, r.Vector, r.Generation, cmp.Or(r.Space, r.Generation), status, r.EventTime, r.Shard,
		r.Seq, r.Offset}
}

// Apply implements vectordb.Index.
func (x *Index) Apply(ctx context.Context, b vectordb.Batch) error {
	if _, err := x.readOwnCatalog(ctx); err != nil {
		return err
	}
	for _, c := range b.Changes {
		if c.Table.Dim == 0 {
			continue
		}
		index := "/" + writeAlias(c.Table.Name(x.name))
		kept, err := x.keptOf(ctx, index, c.Upserts)
		if err != nil {
			return err
		}
		var body bytes.Buffer
		for _, r := range c.Upserts {
			if !searchable(r.Vector) {
				action(&body, "delete", r.NodeID, r.Offset+1, "external", nil)
				continue
			}
			source, err := withAttributes(documentOf(r), kept[r.NodeID])
			if err != nil {
				return fmt.Errorf("%w: the document of %q: %w", vectordb.ErrRefused, r.NodeID, err)
			}
			action(&body, "index", r.NodeID, r.Offset+1, "external", source)
		}
		for _, r := range c.Deletes {
			action(&body, "delete", r.NodeID, r.Offset+1, "external", nil)
		}
		if err := x.bulk(ctx, index+"/_bulk?require_alias=true", body.Bytes(), false); err != nil {
			return err
		}
		if err := x.setAttributes(ctx, index, c.Attributes); err != nil {
			return err
		}
	}
	progress, err := json.Marshal(b.Progress)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	// Offsets are far below 2⁴⁴.
	action(&body, "index", progressID(b.Partition), b.Progress.Epoch<<44+b.Progress.Next+1, "external_gte",
		object{"partition": b.Partition, "document": string(progress)})
	return x.bulk(ctx, x.sinkIndex()+"/_bulk", body.Bytes(), false)
}

// searchable reports whether a vector has a direction. OpenSearch refuses one that has none where cosines are compared.
func searchable(v []float32) bool {
	return slices.ContainsFunc(v, func(x float32) bool { return x != 0 })
}

// action appends an action of the bulk interface.
func action(to *bytes.Buffer, kind, id string, version int64, versions string, source any) {
	e := json.NewEncoder(to) // writes to memory what can be encoded: it does not fail
	_ = e.Encode(object{kind: object{"_id": id, "version": version, "version_type": versions}})
	if source != nil {
		_ = e.Encode(source)
	}
}

// bulk sends actions. A version that is not newer than what is stored is no fault: the action was done, or is late.
// With read, the actions are of documents as they were read, and others were faster where they are not so any more.
func (x *Index) bulk(ctx context.Context, path string, body []byte, read bool) error {
	if len(body) == 0 {
		return nil
	}
	var answer struct {
		Errors bool `json:"errors"`
		Items  []map[string]struct {
			ID     string          `json:"_id"`
			Status int             `json:"status"`
			Error  json.RawMessage `json:"error"`
		} `json:"items"`
	}
	if err := x.c.Do(ctx, http.MethodPost, path, body, &answer); err != nil || !answer.Errors {
		return err
	}
	var later error
	for _, item := range answer.Items {
		for kind, a := range item {
			missing := a.Status == http.StatusNotFound && kind == "delete" && len(a.Error) == 0
			switch {
			case a.Status < 300, a.Status == http.StatusConflict && !read, missing:
			case rest.Refused(a.Status):
				return fmt.Errorf("%w: OpenSearch on %q: %d %.500s", vectordb.ErrRefused, a.ID, a.Status, a.Error)
			default:
				later = fmt.Errorf("OpenSearch on %q: %d %.500s", a.ID, a.Status, a.Error)
			}
		}
	}
	return later
}

// Newer implements vectordb.Index.
func (x *Index) Newer(context.Context, vectordb.Table, vectordb.Table) (bool, error) {
	return false, vectordb.ErrNoControl
}

// Finish implements vectordb.Index. OpenSearch builds its graphs as segments are written.
func (x *Index) Finish(ctx context.Context, t vectordb.Table) error {
	path := "/" + t.Name(x.name)
	err := x.c.Do(ctx, http.MethodPut, path+"/_settings", object{"index": object{"refresh_interval": "1s"}}, nil)
	if err == nil {
		err = x.c.Do(ctx, http.MethodPost, path+"/_refresh", nil, nil)
	}
	return err
}

// Serve implements vectordb.Index.
func (x *Index) Serve(ctx context.Context, t vectordb.Table, c vectordb.Catalog) error {
	if _, err := x.readOwnCatalog(ctx); err != nil {
		return err
	}
	actions := []object{
		{"remove": object{"index": x.name + "_g*", "alias": x.name, "must_exist": false}},
		{"add": object{"index": t.Name(x.name), "alias": x.name}}}
	if err := x.c.Do(ctx, http.MethodPost, "/_aliases", object{"actions": actions}, nil); err != nil {
		return err
	}
	return x.Save(ctx, c)
}

// Drop implements vectordb.Index.
func (x *Index) Drop(ctx context.Context, t vectordb.Table) error {
	if _, err := x.readOwnCatalog(ctx); err != nil {
		return err
	}
	err := x.c.Do(ctx, http.MethodDelete, "/"+t.Name(x.name), nil, nil)
	if rest.Status(err) == http.StatusNotFound {
		return nil
	}
	return err
}
