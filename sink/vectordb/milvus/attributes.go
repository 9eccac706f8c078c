package milvus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"giantstream/sink/vectordb"
)

// dynamicField is what Milvus calls the field that further fields of a row are in, as a JSON object. Attributes are
// there, because a row may lack any of them, and because a new one needs no change of a collection. Expressions name
// them as any field.
const dynamicField = "$meta"

// attributesOffset is the further field with the offset of the record that the attributes are of.
const attributesOffset = "attributes_offset"

// Attributes implements vectordb.Attributed.
func (x *Index) Attributes() []vectordb.Attribute { return x.attributes }

// checkDynamic refuses a collection whose rows take no further fields.
func (x *Index) checkDynamic(ctx context.Context, name string) error {
	d, err := x.c.DescribeCollection(ctx, &milvuspb.DescribeCollectionRequest{CollectionName: name})
	if d, err = checked("look at "+name, d, err); err != nil || d.GetSchema().GetEnableDynamicField() {
		return err
	}
	return fmt.Errorf("%w: the collection %s was made without attributes; 'giantstream sink refill milvus' makes a "+
		"new one", vectordb.ErrRefused, name)
}

func furtherColumn(data [][]byte) *schemapb.FieldData {
	return &schemapb.FieldData{Type: schemapb.DataType_JSON, FieldName: dynamicField, IsDynamic: true,
		Field: &schemapb.FieldData_Scalars{Scalars: &schemapb.ScalarField{
			Data: &schemapb.ScalarField_JsonData{JsonData: &schemapb.JSONArray{Data: data}}}}}
}

// keptColumn are the further fields of rows that get another vector.
func keptColumn(records []vectordb.Record, kept map[string][]byte) *schemapb.FieldData {
	data := make([][]byte, len(records))
	for i, r := range records {
		if data[i] = kept[rowID(r.NodeID)]; len(data[i]) == 0 {
			data[i] = []byte("{}")
		}
	}
	return furtherColumn(data)
}

// object is what a row has of attributes. Those that it lacks are null: Milvus Lite leaves fields that are not named as
// they were.
func (x *Index) object(r vectordb.Record) ([]byte, error) {
	all := map[string]any{attributesOffset: r.Offset}
	for i, a := range x.attributes {
		all[a.Name] = r.Values[i]
		if v, ok := r.Values[i].(time.Time); ok {
			all[a.Name] = v.UnixMicro() // as event_time
		}
	}
	return json.Marshal(all)
}

// setAttributes writes rows that are older again, with other attributes: Milvus changes no part of a row.
func (x *Index) setAttributes(ctx context.Context, to string, records []vectordb.Record) error {
	ids, of := make([]string, len(records)), map[string]vectordb.Record{}
	for i, r := range records {
		ids[i] = rowID(r.NodeID)
		of[ids[i]] = r
	}
	texts := []string{"id", "node_id", "status"}
	fields := append(append(append([]string{}, texts...), numberFields...), vectorField, dynamicField)
	rows, err := x.query(ctx, to, ids, fields...)
	if err != nil {
		return err
	}
	var change []int
	var further [][]byte
	offsets := rows.numbers("offset")
	for i, id := range rows.text("id") {
		var before struct {
			Offset *int64 `json:"attributes_offset"`
		}
		if err := json.Unmarshal(rows.further()[i], &before); err != nil {
			return fmt.Errorf("%w: row %s of %s: %w", vectordb.ErrRefused, id, to, err)
		}
		r := of[id]
		if offsets[i] >= r.Offset || before.Offset != nil && *before.Offset >= r.Offset {
			continue
		}
		object, err := x.object(r)
		if err != nil {
			return fmt.Errorf("%w: the attributes of %q: %w", vectordb.ErrRefused, r.NodeID, err)
		}
		change, further = append(change, i), append(further, object)
	}
	if len(change) == 0 {
		return nil
	}
	var columns []*schemapb.FieldData
	for _, name := range texts {
		columns = append(columns, textColumn(name, picked(rows.text(name), change, 1)))
	}
	for _, name := range numberFields {
		columns = append(columns, numberColumn(name, picked(rows.numbers(name), change, 1)))
	}
	vectors, dim := rows.vectors()
	columns = append(columns, vectorColumn(dim, picked(vectors, change, dim)), furtherColumn(further))
	return x.upsert(ctx, to, columns, len(change))
}

// picked are the values of some rows, `each` of each row.
func picked[T any](all []T, of []int, each int) (out []T) {
	for _, i := range of {
		out = append(out, all[i*each:(i+1)*each]...)
	}
	return out
}
