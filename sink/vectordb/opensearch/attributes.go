package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/internal/rest"
)

// attributesOffset is the field of a document with the offset of the record that its attributes are of, -1 for none
// yet.
const attributesOffset = "attributes_offset"

// read bounds the documents of a request.
const read = 1000

// Attributes implements vectordb.Attributed.
func (x *Index) Attributes() []vectordb.Attribute { return x.attributes }

// typeOf is what OpenSearch calls the type of an attribute.
func typeOf(t vectordb.AttributeType) string {
	switch t {
	case vectordb.Number:
		return "double"
	case vectordb.Boolean:
		return "boolean"
	case vectordb.Time:
		return "date"
	}
	return "keyword"
}

// mapAttributes adds the fields of attributes to an index, unless it has them.
func (x *Index) mapAttributes(ctx context.Context, name string) error {
	if len(x.attributes) == 0 {
		return nil
	}
	fields := object{}
	for _, a := range x.attributes {
		fields[a.Name] = object{"type": typeOf(a.Type)}
	}
	err := x.c.Do(ctx, http.MethodPut, "/"+name+"/_mapping", object{"properties": fields}, nil)
	if rest.Status(err) == http.StatusBadRequest && strings.Contains(err.Error(), "cannot be changed from type") {
		return fmt.Errorf("%w: an attribute has had another type (%w). 'giantstream sink refill opensearch' makes a "+
			"new index", vectordb.ErrRefused, err)
	}
	return err
}

// fields is a document as it is read.
type fields = map[string]json.RawMessage

// documents reads those of some nodes, of all their fields the given ones, or all.
func (x *Index) documents(ctx context.Context, index string, records []vectordb.Record, some ...string) (
	all []stored[fields], err error) {
	for part := range slices.Chunk(records, read) {
		ids := make([]string, len(part))
		for i, r := range part {
			ids[i] = r.NodeID
		}
		var answer struct {
			Docs []stored[fields] `json:"docs"`
		}
		path := index + "/_mget"
		if len(some) > 0 {
			path += "?_source_includes=" + strings.Join(some, ",")
		}
		if err := x.c.Do(ctx, http.MethodPost, path, object{"ids": ids}, &answer); err != nil {
			return nil, err
		}
		if len(answer.Docs) != len(part) {
			return nil, fmt.Errorf("OpenSearch was asked for %d documents of %s and returns %d", len(part), index,
				len(answer.Docs))
		}
		all = append(all, answer.Docs...)
	}
	return all, nil
}

// keptOf returns, by node, the attributes that a new vector leaves, nil where there are no attributes at all.
func (x *Index) keptOf(ctx context.Context, index string, upserts []vectordb.Record) (map[string]fields, error) {
	if len(x.attributes) == 0 {
		return nil, nil
	}
	some := []string{attributesOffset}
	for _, a := range x.attributes {
		some = append(some, a.Name)
	}
	found, err := x.documents(ctx, index, upserts, some...)
	kept := map[string]fields{}
	for _, d := range found {
		kept[d.ID] = fields{attributesOffset: json.RawMessage("-1")}
		for _, field := range some {
			if value, ok := d.Source[field]; ok {
				kept[d.ID][field] = value
			}
		}
	}
	return kept, err
}

// withAttributes returns a document with the attributes that it keeps.
func withAttributes(d document, kept fields) (any, error) {
	if kept == nil {
		return d, nil
	}
	b, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	all := fields{}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	maps.Copy(all, kept)
	return all, nil
}

// setAttributes changes the attributes of documents that are older, if they still are as they were read.
//
// OpenSearch adds 1 to the version of a document that is written so. The version stays below that of the next
// embedding, because attributes are written only for records behind the document's own, each once.
func (x *Index) setAttributes(ctx context.Context, index string, records []vectordb.Record) error {
	if len(records) == 0 || len(x.attributes) == 0 {
		return nil
	}
	found, err := x.documents(ctx, index, records)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	for i, d := range found {
		r := records[i]
		if !d.Found || !older(d.Source, r.Offset) {
			continue
		}
		for j, a := range x.attributes {
			value, err := json.Marshal(r.Values[j])
			if err != nil {
				return fmt.Errorf("%w: attribute %s of %q: %w", vectordb.ErrRefused, a.Name, r.NodeID, err)
			}
			d.Source[a.Name] = value
		}
		d.Source[attributesOffset] = fmt.Appendf(nil, "%d", r.Offset)
		e := json.NewEncoder(&body)
		_ = e.Encode(object{"index": object{"_id": r.NodeID, "if_seq_no": d.SeqNo, "if_primary_term": d.Term}})
		_ = e.Encode(d.Source)
	}
	return x.bulk(ctx, index+"/_bulk?require_alias=true", body.Bytes(), true)
}

// older reports whether a document, and its attributes, are of records before an offset. Documents of older releases
// have no offsets; those of the attributes come with the next embedding of the node.
func older(d fields, offset int64) bool {
	for _, field := range []string{"topic_offset", attributesOffset} {
		var at int64
		if json.Unmarshal(d[field], &at) != nil || at >= offset {
			return false
		}
	}
	return true
}
