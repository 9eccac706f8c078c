package qdrant

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"giantstream/sink/vectordb"
)

// attributesOffset is the field of a payload with the offset of the record that the attributes are of, -1 for none yet.
const attributesOffset = "attributes_offset"

// Attributes implements vectordb.Attributed.
func (x *Index) Attributes() []vectordb.Attribute { return x.attributes }

// attributeFields are the fields of a payload that a new vector leaves.
func (x *Index) attributeFields() (fields []string) {
	if len(x.attributes) == 0 {
		return nil
	}
	for _, a := range x.attributes {
		fields = append(fields, a.Name)
	}
	return append(fields, attributesOffset)
}

// schemaOf is what Qdrant calls an index of the values of an attribute.
func schemaOf(t vectordb.AttributeType) string {
	switch t {
	case vectordb.Number:
		return "float"
	case vectordb.Boolean:
		return "bool"
	case vectordb.Time:
		return "datetime"
	}
	return "keyword"
}

// indexAttributes lets searches with conditions on attributes use an index.
func (x *Index) indexAttributes(ctx context.Context, name string) error {
	if len(x.attributes) == 0 {
		return nil
	}
	var about struct {
		Result struct {
			Schema map[string]struct {
				Type string `json:"data_type"`
			} `json:"payload_schema"`
		} `json:"result"`
	}
	if err := x.c.Do(ctx, http.MethodGet, collection(name), nil, &about); err != nil {
		return err
	}
	for _, a := range x.attributes {
		there, ok := about.Result.Schema[a.Name]
		switch {
		case ok && there.Type == schemaOf(a.Type):
			continue
		case ok:
			return fmt.Errorf("%w: the payload index of %s in %s is of %s, and the attribute is a %s, which needs %s. "+
				"'giantstream sink refill qdrant' makes a new collection", vectordb.ErrRefused, a.Name, name,
				there.Type, a.Type, schemaOf(a.Type))
		}
		err := x.c.Do(ctx, http.MethodPut, collection(name)+"/index?wait=true&ordering=strong",
			object{"field_name": a.Name, "field_schema": schemaOf(a.Type)}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// setAttributes changes the attributes of points that are older. A deleted point has no offset of attributes, and so
// meets no condition on it.
func (x *Index) setAttributes(ctx context.Context, path string, records []vectordb.Record) error {
	if len(records) == 0 || len(x.attributes) == 0 {
		return nil
	}
	operations := make([]object, len(records))
	for i, r := range records {
		payload := object{attributesOffset: r.Offset}
		for j, a := range x.attributes {
			payload[a.Name] = r.Values[j]
		}
		operations[i] = object{"set_payload": object{"payload": payload, "filter": object{"must": []object{
			{"has_id": []string{pointID(r.NodeID)}}, less("offset", r.Offset), less(attributesOffset, r.Offset)}}}}
	}
	return x.c.Do(ctx, http.MethodPost, path+"/points/batch?wait=true&ordering=strong",
		object{"operations": operations}, nil)
}

// readBefore returns the offsets of points, and what a new vector leaves of their payloads.
func (x *Index) readBefore(ctx context.Context, path string, ids []any) (offsets map[any]int64, kept map[any]object,
	err error) {
	var answer struct {
		Result []struct {
			ID      any                        `json:"id"`
			Payload map[string]json.RawMessage `json:"payload"`
		} `json:"result"`
	}
	if err := x.readPoints(ctx, path, ids, append([]string{"offset"}, x.attributeFields()...), &answer); err != nil {
		return nil, nil, err
	}
	offsets, kept = map[any]int64{}, map[any]object{}
	for _, at := range answer.Result {
		var offset int64
		if err := json.Unmarshal(at.Payload["offset"], &offset); err != nil {
			return nil, nil, fmt.Errorf("%w: point %v of %s has no offset", vectordb.ErrRefused, at.ID, path)
		}
		offsets[at.ID], kept[at.ID] = offset, object{}
		for _, field := range x.attributeFields() {
			if value, ok := at.Payload[field]; ok {
				kept[at.ID][field] = value
			}
		}
	}
	return offsets, kept, nil
}
