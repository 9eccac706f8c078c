package milvus

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"google.golang.org/protobuf/proto"

	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
)

const vectorField = "embedding"

// rowID is the key of a node: a hash, since a key stands in expressions, which have rules of their own for quotes.
func rowID(nodeID string) string {
	h := sha256.Sum256([]byte(nodeID))
	return hex.EncodeToString(h[:16])
}

// among is the expression for some keys.
func among(ids []string) string { return `id in ["` + strings.Join(ids, `","`) + `"]` }

func pairs(kv ...string) (out []*commonpb.KeyValuePair) {
	for i := 0; i < len(kv); i += 2 {
		out = append(out, &commonpb.KeyValuePair{Key: kv[i], Value: kv[i+1]})
	}
	return out
}

func keyField() *schemapb.FieldSchema {
	f := textField("id", 64)
	f.IsPrimaryKey = true
	return f
}

func textField(name string, most int) *schemapb.FieldSchema {
	return &schemapb.FieldSchema{Name: name, DataType: schemapb.DataType_VarChar,
		TypeParams: pairs("max_length", strconv.Itoa(most))}
}

func vectorsField(dim int) *schemapb.FieldSchema {
	return &schemapb.FieldSchema{Name: vectorField, DataType: schemapb.DataType_FloatVector,
		TypeParams: pairs("dim", strconv.Itoa(dim))}
}

// numberFields are those of a row of a node, besides texts and vector.
var numberFields = []string{"offset", "generation", "space", "event_time", "shard", "seq"}

func nodeFields(dim int) []*schemapb.FieldSchema {
	fields := []*schemapb.FieldSchema{keyField(), textField("node_id", maxID), vectorsField(dim),
		textField("status", 16)}
	for _, name := range numberFields {
		fields = append(fields, &schemapb.FieldSchema{Name: name, DataType: schemapb.DataType_Int64})
	}
	return fields
}

// documentFields are those of the collection of the sink. Every collection needs a vector.
func documentFields() []*schemapb.FieldSchema {
	return []*schemapb.FieldSchema{keyField(), textField("document", maxID), vectorsField(2)}
}

func textColumn(name string, data []string) *schemapb.FieldData {
	return &schemapb.FieldData{Type: schemapb.DataType_VarChar, FieldName: name, Field: &schemapb.FieldData_Scalars{
		Scalars: &schemapb.ScalarField{Data: &schemapb.ScalarField_StringData{
			StringData: &schemapb.StringArray{Data: data}}}}}
}

func numberColumn(name string, data []int64) *schemapb.FieldData {
	return &schemapb.FieldData{Type: schemapb.DataType_Int64, FieldName: name, Field: &schemapb.FieldData_Scalars{
		Scalars: &schemapb.ScalarField{Data: &schemapb.ScalarField_LongData{
			LongData: &schemapb.LongArray{Data: data}}}}}
}

func vectorColumn(dim int, data []float32) *schemapb.FieldData {
	return &schemapb.FieldData{Type: schemapb.DataType_FloatVector, FieldName: vectorField,
		Field: &schemapb.FieldData_Vectors{Vectors: &schemapb.VectorField{Dim: int64(dim),
			Data: &schemapb.VectorField_FloatVector{FloatVector: &schemapb.FloatArray{Data: data}}}}}
}

func documentColumns(id, document string) []*schemapb.FieldData {
	return []*schemapb.FieldData{textColumn("id", []string{id}), textColumn("document", []string{document}),
		vectorColumn(2, []float32{1, 0})}
}

// nodeColumns are the rows of records with vectors.
func nodeColumns(records []vectordb.Record) []*schemapb.FieldData {
	dim := len(records[0].Vector)
	var ids, nodes, statuses []string
	vectors := make([]float32, 0, dim*len(records))
	numbers := make([][]int64, len(numberFields))
	for _, r := range records {
		ids, nodes = append(ids, rowID(r.NodeID)), append(nodes, r.NodeID)
		status := string(r.Status)
		if r.Status == embedding.FromText {
			status = "text"
		}
		statuses = append(statuses, status)
		vectors = append(vectors, r.Vector...)
		for i, n := range []int64{r.Offset, r.Generation, cmp.Or(r.Space, r.Generation), r.EventTime, int64(r.Shard),
			r.Seq} {
			numbers[i] = append(numbers[i], n)
		}
	}
	columns := []*schemapb.FieldData{textColumn("id", ids), textColumn("node_id", nodes), vectorColumn(dim, vectors),
		textColumn("status", statuses)}
	for i, name := range numberFields {
		columns = append(columns, numberColumn(name, numbers[i]))
	}
	return columns
}

// rows are what a query has found, by columns.
type rows []*schemapb.FieldData

func (r rows) column(name string) *schemapb.ScalarField {
	for _, f := range r {
		if f.GetFieldName() == name {
			return f.GetScalars()
		}
	}
	return nil
}

func (r rows) text(name string) []string   { return r.column(name).GetStringData().GetData() }
func (r rows) numbers(name string) []int64 { return r.column(name).GetLongData().GetData() }

func (r rows) further() [][]byte { return r.column(dynamicField).GetJsonData().GetData() }

// vectors returns the vectors, one after the other.
func (r rows) vectors() (data []float32, dim int) {
	for _, f := range r {
		if f.GetFieldName() == vectorField {
			return f.GetVectors().GetFloatVector().GetData(), int(f.GetVectors().GetDim())
		}
	}
	return nil, 0
}

// length is how many values a column has.
func (r rows) length(name string) int {
	switch name {
	case vectorField:
		data, dim := r.vectors()
		return len(data) / max(dim, 1)
	case dynamicField:
		return len(r.further())
	}
	return len(r.text(name)) + len(r.numbers(name))
}

// query returns fields of rows, as they are after all writes that have been answered.
func (x *Index) query(ctx context.Context, from string, ids []string, fields ...string) (rows, error) {
	q, err := x.c.Query(ctx, &milvuspb.QueryRequest{CollectionName: from, Expr: among(ids), OutputFields: fields,
		ConsistencyLevel: commonpb.ConsistencyLevel_Strong})
	q, err = checked("read rows of "+from, q, err)
	found := rows(q.GetFieldsData())
	if err == nil {
		for _, f := range fields {
			if n := found.length(f); n != len(found.text(fields[0])) {
				return nil, errors.New("read rows of " + from + ": the columns of the answer differ in length")
			}
		}
	}
	return found, err
}

// upsert writes whole rows.
func (x *Index) upsert(ctx context.Context, to string, columns []*schemapb.FieldData, n int) error {
	m, err := x.c.Upsert(ctx, &milvuspb.UpsertRequest{CollectionName: to, FieldsData: columns,
		NumRows: uint32(n)}) //nolint:gosec // at most chunk
	_, err = checked("write rows of "+to, m, err)
	return err
}

func (x *Index) has(ctx context.Context, collection string) (bool, error) {
	b, err := x.c.HasCollection(ctx, &milvuspb.HasCollectionRequest{CollectionName: collection})
	b, err = checked("look for "+collection, b, err)
	return b.GetValue(), err
}

// free refuses a sink whose alias would take the name of a collection, before one is filled for it.
func (x *Index) free(ctx context.Context) error {
	d, err := x.c.DescribeCollection(ctx, &milvuspb.DescribeCollectionRequest{CollectionName: x.name})
	d, err = checked("look for "+x.name, d, err)
	switch {
	case missing(err):
		return nil
	case err != nil:
		return err
	case d.GetCollectionName() == x.name: // an alias would lead to another name
		return fmt.Errorf("%w: readers would ask an alias %s, and a collection has this name. Rename it, or choose "+
			"another sinks.name", vectordb.ErrRefused, x.name)
	}
	return nil
}

// create makes a collection unless it exists, and makes it ready to be read.
// With dynamic, rows may have further fields.
func (x *Index) create(ctx context.Context, name string, fields []*schemapb.FieldSchema, dynamic bool) error {
	there, err := x.has(ctx, name)
	if err != nil {
		return err
	}
	if !there {
		schema, err := proto.Marshal(&schemapb.CollectionSchema{Name: name, Fields: fields,
			EnableDynamicField: dynamic})
		if err != nil {
			return err
		}
		st, err := x.c.CreateCollection(ctx, &milvuspb.CreateCollectionRequest{CollectionName: name, Schema: schema,
			ShardsNum: 1, ConsistencyLevel: commonpb.ConsistencyLevel_Bounded})
		if err := check("create "+name, st, err); err != nil {
			return err // if another attempt was first, the next one finds it
		}
	} else if dynamic {
		if err := x.checkDynamic(ctx, name); err != nil {
			return err
		}
	}
	d, err := x.c.DescribeIndex(ctx, &milvuspb.DescribeIndexRequest{CollectionName: name, FieldName: vectorField})
	if err != nil || len(d.GetIndexDescriptions()) == 0 {
		st, err := x.c.CreateIndex(ctx, &milvuspb.CreateIndexRequest{CollectionName: name, FieldName: vectorField,
			IndexName: vectorField, ExtraParams: pairs("index_type", "HNSW", "metric_type", "COSINE",
				"params", `{"M": 16, "efConstruction": 128}`)})
		if err := check("create the index of "+name, st, err); err != nil {
			return err
		}
	}
	st, err := x.c.LoadCollection(ctx, &milvuspb.LoadCollectionRequest{CollectionName: name, ReplicaNumber: 1})
	if err := check("load "+name, st, err); err != nil {
		return err
	}
	return await(ctx, func() (bool, error) {
		s, err := x.c.GetLoadState(ctx, &milvuspb.GetLoadStateRequest{CollectionName: name})
		s, err = checked("wait until "+name+" is loaded", s, err)
		return s.GetState() == commonpb.LoadState_LoadStateLoaded, err
	})
}
