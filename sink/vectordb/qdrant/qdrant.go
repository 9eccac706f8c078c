package qdrant

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"giantstream/internal/retry"
	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/internal/rest"
)

// Options of an index.
type Options struct {
	// URL of the server, APIKey "" for none.
	URL, APIKey string
	// TLS is nil for the system's certificates.
	TLS *tls.Config
	// Name of the alias, and prefix of the collections: a-z, 0-9 and _.
	Name string
	// Attributes are fields of the points' payloads, with an index each.
	Attributes []vectordb.Attribute
}

// Index is a vectordb.Index in Qdrant.
type Index struct {
	name    string
	session string
	c       *rest.Client

	attributes []vectordb.Attribute
}

// vectorName is what the vector of a point is called. Only points whose vectors have names may have none.
const vectorName = "embedding"

// The catalog is point 1 of the collection of the sink, the progress of partition p point firstProgress+p.
const (
	catalogPoint  = 1
	firstProgress = 1000
)

// indexingThreshold is Qdrant's own, in KiB of vectors of a segment.
const indexingThreshold = 10000

// New returns an index, which connects when it is opened.
func New(o Options) *Index {
	header := http.Header{}
	if o.APIKey != "" {
		header.Set("Api-Key", o.APIKey)
	}
	return &Index{name: o.Name, session: rand.Text(), c: rest.New(o.URL, header, o.TLS),
		attributes: o.Attributes}
}

// Close implements vectordb.Index.
func (x *Index) Close() error {
	x.c.Close()
	return nil
}

// Check implements vectordb.Index.
func (x *Index) Check(string) error { return nil }

type object = map[string]any

// match, less and atMost are conditions on a field of the payload.
func match(key string, value any) object {
	return object{"key": key, "match": object{"value": value}}
}
func less(key string, n int64) object { return object{"key": key, "range": object{"lt": n}} }

func atMost(key string, n int64) object { return object{"key": key, "range": object{"lte": n}} }

func collection(name string) string { return "/collections/" + url.PathEscape(name) }

// sinkCollection returns the path of the collection that holds the sink's own documents.
func (x *Index) sinkCollection() string { return collection(x.name + "_sink") }

// point is a point as it is written.
type point struct {
	ID      any    `json:"id"`
	Vector  object `json:"vector"`
	Payload any    `json:"payload"`
}

// upsert writes points, of those that exist only the ones that meet all conditions.
func (x *Index) upsert(ctx context.Context, path string, points []point, conditions ...object) error {
	return x.c.Do(ctx, http.MethodPut, path+"/points?wait=true&ordering=strong",
		object{"points": points, "update_filter": object{"must": conditions}}, nil)
}

// stored is what is read of a point.
type stored struct {
	ID      any `json:"id"`
	Payload struct {
		Session  string `json:"session"`
		Document string `json:"document"`
		NodeID   string `json:"node_id"`
	} `json:"payload"`
}

// read returns points of a collection.
func (x *Index) read(ctx context.Context, path string, ids []any, fields ...string) ([]stored, error) {
	var answer struct {
		Result []stored `json:"result"`
	}
	err := x.readPoints(ctx, path, ids, fields, &answer)
	return answer.Result, err
}

func (x *Index) readPoints(ctx context.Context, path string, ids []any, fields []string, to any) error {
	return x.c.Do(ctx, http.MethodPost, path+"/points?consistency=majority",
		object{"ids": ids, "with_payload": fields, "with_vector": false}, to)
}

// Open implements vectordb.Index.
func (x *Index) Open(ctx context.Context) (vectordb.Saved, error) {
	saved := vectordb.Saved{Progress: map[int]vectordb.Progress{}}
	var about struct {
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	if err := x.c.Do(ctx, http.MethodGet, "/", nil, &about); err != nil {
		return saved, err
	}
	var major, minor int
	_, err := fmt.Sscanf(about.Version, "%d.%d", &major, &minor)
	if err == nil && (major < 1 || major == 1 && minor < 16) {
		return saved, fmt.Errorf("%w: Qdrant %s has no conditional updates, without which a late write could replace "+
			"a newer one; use 1.16 or newer", vectordb.ErrRefused, about.Version)
	}
	if err := x.create(ctx, x.name+"_sink", object{"vectors": object{}}); err != nil {
		return saved, err
	}
	// The point may be there, and keeps its document then.
	empty := point{catalogPoint, object{}, object{"session": "", "document": "{}"}}
	if err := x.upsert(ctx, x.sinkCollection(), []point{empty}, match("session", "")); err != nil {
		return saved, err
	}
	err = x.c.Do(ctx, http.MethodPost, x.sinkCollection()+"/points/payload?wait=true&ordering=strong",
		object{"payload": object{"session": x.session}, "points": []int{catalogPoint}}, nil)
	if err != nil {
		return saved, err
	}
	found, err := x.readOwnCatalog(ctx)
	if err == nil {
		err = json.Unmarshal([]byte(found), &saved.Catalog)
	}
	if err != nil {
		return saved, err
	}
	ids := make([]any, saved.Catalog.Partitions)
	for p := range ids {
		ids[p] = firstProgress + p
	}
	if len(ids) == 0 {
		return saved, nil
	}
	points, err := x.read(ctx, x.sinkCollection(), ids, "document")
	for _, at := range points {
		id, ok := at.ID.(float64)
		var p vectordb.Progress
		if !ok || json.Unmarshal([]byte(at.Payload.Document), &p) != nil {
			return saved, fmt.Errorf("%w: point %v of %s_sink is no progress of a partition", vectordb.ErrRefused,
				at.ID, x.name)
		}
		saved.Progress[int(id)-firstProgress] = p
	}
	return saved, err
}

// readOwnCatalog returns the catalog's document. The error is ErrTakenOver if another process has opened the sink.
func (x *Index) readOwnCatalog(ctx context.Context) (string, error) {
	points, err := x.read(ctx, x.sinkCollection(), []any{catalogPoint}, "session", "document")
	if err != nil {
		return "", err
	}
	if len(points) != 1 {
		return "", fmt.Errorf("%w: the catalog of %s_sink is gone", vectordb.ErrRefused, x.name)
	}
	if points[0].Payload.Session != x.session {
		return "", vectordb.ErrTakenOver
	}
	return points[0].Payload.Document, nil
}

// create makes a collection unless it exists.
func (x *Index) create(ctx context.Context, name string, body object) error {
	var there struct {
		Result struct {
			Exists bool `json:"exists"`
		} `json:"result"`
	}
	if err := x.c.Do(ctx, http.MethodGet, collection(name)+"/exists", nil, &there); err != nil || there.Result.Exists {
		return err
	}
	err := x.c.Do(ctx, http.MethodPut, collection(name), body, nil)
	if rest.Status(err) == http.StatusConflict {
		return nil // another attempt was first
	}
	return err
}

// Save implements vectordb.Index.
func (x *Index) Save(ctx context.Context, c vectordb.Catalog) error {
	document, err := json.Marshal(c)
	if err != nil {
		return err
	}
	at := point{catalogPoint, object{}, object{"session": x.session, "document": string(document)}}
	if err := x.upsert(ctx, x.sinkCollection(), []point{at}, match("session", x.session)); err != nil {
		return err
	}
	_, err = x.readOwnCatalog(ctx)
	return err
}

// Create implements vectordb.Index.
func (x *Index) Create(ctx context.Context, t vectordb.Table) error {
	if t.Dim == 0 {
		return nil // there is nothing to put in yet
	}
	if _, err := x.readOwnCatalog(ctx); err != nil {
		return err
	}
	err := x.create(ctx, t.Name(x.name), object{
		"vectors": object{vectorName: object{"size": t.Dim, "distance": "Cosine"}},
		// Its graphs are built when it is full.
		"optimizers_config": object{"indexing_threshold": 0}})
	if err != nil {
		return err
	}
	return x.indexAttributes(ctx, t.Name(x.name))
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
		path := collection(c.Table.Name(x.name))
		if err := x.change(ctx, path, b.From, c); err != nil {
			return err
		}
		if err := x.setAttributes(ctx, path, c.Attributes); err != nil {
			return err
		}
	}
	document, err := json.Marshal(b.Progress)
	if err != nil {
		return err
	}
	at := point{firstProgress + b.Partition, object{},
		object{"document": string(document), "epoch": b.Progress.Epoch, "next": b.Progress.Next}}
	return x.upsert(ctx, x.sinkCollection(), []point{at}, object{"should": []object{less("epoch", b.Progress.Epoch),
		{"must": []object{match("epoch", b.Progress.Epoch), atMost("next", b.Progress.Next)}}}})
}

// change writes the records that are newer than what is stored. Those whose point was written before the batch began,
// or not at all, go together, under the condition that it is still so. The few others, of a batch that is repeated in
// other bounds, go one by one.
func (x *Index) change(ctx context.Context, path string, from int64, c vectordb.Change) error {
	records := append(append([]vectordb.Record{}, c.Upserts...), c.Deletes...)
	if len(records) == 0 {
		return nil
	}
	ids := make([]any, len(records))
	for i, r := range records {
		ids[i] = pointID(r.NodeID)
	}
	offsets, kept, err := x.readBefore(ctx, path, ids)
	if err != nil {
		return err
	}
	var together []point
	for i, r := range records {
		at, ok := offsets[ids[i]]
		switch {
		case ok && at >= r.Offset:
		case ok && at >= from:
			if err := x.upsert(ctx, path, []point{x.pointOf(r, kept[ids[i]])}, less("offset", r.Offset)); err != nil {
				return err
			}
		default:
			together = append(together, x.pointOf(r, kept[ids[i]]))
		}
	}
	if len(together) == 0 {
		return nil
	}
	return x.upsert(ctx, path, together, less("offset", max(0, from)))
}

// pointID is a UUID (version 8) made of the node's id.
func pointID(nodeID string) string {
	h := sha256.Sum256([]byte(nodeID))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// pointOf returns the point of a record, which keeps attributes of the point before.
func (x *Index) pointOf(r vectordb.Record, kept object) point {
	p := point{ID: pointID(r.NodeID), Vector: object{}}
	if r.Deleted {
		// It stays for its offset, and says nothing else of a node that may have to be forgotten.
		p.Payload = object{"offset": r.Offset, "deleted": true}
		return p
	}
	if len(r.Vector) > 0 {
		p.Vector[vectorName] = r.Vector
	}
	status := string(r.Status)
	if r.Status == embedding.FromText {
		status = "text"
	}
	p.Payload = object{"node_id": r.NodeID, "offset": r.Offset, "generation": r.Generation,
		"space": cmp.Or(r.Space, r.Generation), "status": status,
		"event_time": time.UnixMicro(r.EventTime).UTC().Format(time.RFC3339Nano), "shard": r.Shard, "seq": r.Seq}
	if len(x.attributes) > 0 {
		p.Payload.(object)[attributesOffset] = -1
		maps.Copy(p.Payload.(object), kept)
	}
	return p
}

// Newer implements vectordb.Index.
func (x *Index) Newer(context.Context, vectordb.Table, vectordb.Table) (bool, error) {
	return false, vectordb.ErrNoControl
}

// Finish implements vectordb.Index.
func (x *Index) Finish(ctx context.Context, t vectordb.Table) error {
	path := collection(t.Name(x.name))
	err := x.c.Do(ctx, http.MethodPatch, path,
		object{"optimizers_config": object{"indexing_threshold": indexingThreshold}}, nil)
	pause := retry.Backoff{Min: 50 * time.Millisecond, Max: 5 * time.Second}
	for err == nil {
		var about struct {
			Result struct {
				Status string `json:"status"`
			} `json:"result"`
		}
		if err = x.c.Do(ctx, http.MethodGet, path, nil, &about); err == nil {
			switch about.Result.Status {
			case "green":
				return nil
			case "red":
				return errors.New("the collection's status is red; Qdrant's log says why")
			}
			err = pause.Wait(ctx)
		}
	}
	return err
}

// Serve implements vectordb.Index.
func (x *Index) Serve(ctx context.Context, t vectordb.Table, c vectordb.Catalog) error {
	if _, err := x.readOwnCatalog(ctx); err != nil {
		return err
	}
	var known struct {
		Result struct {
			Aliases []struct {
				Alias string `json:"alias_name"`
			} `json:"aliases"`
		} `json:"result"`
	}
	if err := x.c.Do(ctx, http.MethodGet, "/aliases", nil, &known); err != nil {
		return err
	}
	var actions []object
	for _, a := range known.Result.Aliases {
		if a.Alias == x.name {
			actions = append(actions, object{"delete_alias": object{"alias_name": x.name}})
		}
	}
	actions = append(actions,
		object{"create_alias": object{"collection_name": t.Name(x.name), "alias_name": x.name}})
	if err := x.c.Do(ctx, http.MethodPost, "/collections/aliases", object{"actions": actions}, nil); err != nil {
		return err
	}
	return x.Save(ctx, c)
}

// Drop implements vectordb.Index.
func (x *Index) Drop(ctx context.Context, t vectordb.Table) error {
	if _, err := x.readOwnCatalog(ctx); err != nil {
		return err
	}
	err := x.c.Do(ctx, http.MethodDelete, collection(t.Name(x.name)), nil, nil)
	if rest.Status(err) == http.StatusNotFound {
		return nil
	}
	return err
}
