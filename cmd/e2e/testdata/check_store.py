#!/usr/bin/env python3
"""Opens everything that a finished run offers to others (batches, training set,
embeddings) with pyarrow and DuckDB, and compares types and counts with the
manifests and generation.json. Prints what it found, or fails.

usage: check_store.py STORE
"""
import glob
import json
import os
import sys

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

ROWS = {
    "node_id": (pa.string(), "VARCHAR"),
    "text": (pa.string(), "VARCHAR"),
    "class": (pa.string(), "VARCHAR"),
    "labels": (pa.list_(pa.string()), "VARCHAR[]"),
    "feature_indices": (pa.list_(pa.int32()), "INTEGER[]"),
    "feature_values": (pa.list_(pa.float32()), "FLOAT[]"),
    "targets": (pa.list_(pa.list_(pa.int32())), "INTEGER[][]"),
    "target_counts": (pa.list_(pa.list_(pa.int32())), "INTEGER[][]"),
    "generation": (pa.int64(), "BIGINT"),
    "event_time": (pa.timestamp("us", tz="UTC"), "TIMESTAMP WITH TIME ZONE"),
    "deleted": (pa.bool_(), "BOOLEAN"),
    "attributes": (pa.string(), "VARCHAR"),
    "link_ends": (pa.list_(pa.string()), "VARCHAR[]"),
    "link_weights": (pa.list_(pa.float32()), "FLOAT[]"),
    "link_times": (pa.list_(pa.timestamp("us", tz="UTC")), "TIMESTAMP WITH TIME ZONE[]"),
    "link_kinds": (pa.list_(pa.string()), "VARCHAR[]"),
}
ATTRIBUTES = {name: ROWS[name] for name in ("node_id", "attributes", "event_time")}
EMBEDDINGS = {
    "node_id": (pa.string(), "VARCHAR"),
    "embedding": (pa.list_(pa.float32()), "FLOAT[]"),
    "generation": (pa.int64(), "BIGINT"),
    "space": (pa.int64(), "BIGINT"),
    "event_time": (pa.timestamp("us", tz="UTC"), "TIMESTAMP WITH TIME ZONE"),
    "shard": (pa.int32(), "INTEGER"),
    "seq": (pa.int64(), "BIGINT"),
    "status": (pa.string(), "VARCHAR"),
}


def same(a, b):
    """Types are equal but for the names of list elements."""
    if pa.types.is_list(a) and pa.types.is_list(b):
        return same(a.value_type, b.value_type)
    return a.equals(b)


def check_file(store, part, schema):
    """A file has the columns, types and rows that it should have, for both readers."""
    path = os.path.join(store, part["key"])
    got = pq.read_schema(path)
    assert got.names == list(schema), (path, got.names)
    for name, (arrow, _) in schema.items():
        assert same(got.field(name).type, arrow), (path, name, got.field(name).type)
    assert pq.read_metadata(path).num_rows == part["rows"], path
    assert os.path.getsize(path) == part["bytes"], path
    described = duckdb.sql(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
    assert [(d[0], d[1]) for d in described] == [(n, d) for n, (_, d) in schema.items()], (path, described)
    assert duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall()[0][0] == part["rows"], path
    return path


def main(store):
    with open(sorted(glob.glob(f"{store}/generations/*/generation.json"))[-1]) as f:
        doc = json.load(f)
    folder = f"{store}/generations/{doc['generation']:06d}"
    levels = doc["tree"]["levels"]

    batches = 0
    for manifest in glob.glob(f"{store}/shards/*/manifests/*.json"):
        with open(manifest) as f:
            m = json.load(f)
        for part in m["objects"]:
            check_file(store, part, ATTRIBUTES if part.get("table") == "attributes" else ROWS)
            batches += part["rows"]
    everything = pa.dataset.dataset(glob.glob(f"{store}/shards/*/rows/*.parquet"))
    assert everything.count_rows() >= batches > 0, batches  # a killed run leaves garbage
    live = duckdb.sql(f"""SELECT count(*) FROM (
        SELECT node_id, arg_max(deleted, filename) AS deleted
        FROM read_parquet('{store}/shards/*/rows/*.parquet', filename = true, union_by_name = true)
        WHERE deleted IS NOT NULL GROUP BY node_id) WHERE NOT deleted""").fetchall()[0][0]
    assert live == doc["graph"]["nodes"], (live, doc["graph"])

    for part in doc["dataset"]:
        check_file(store, part, ROWS)
    dataset = pa.dataset.dataset(f"{folder}/dataset").to_table()
    assert dataset.num_rows == sum(p["rows"] for p in doc["dataset"]) > 0
    for row in dataset.to_pylist():
        assert len(row["targets"]) == len(levels), row
        for clusters, counts, size in zip(row["targets"], row["target_counts"], levels):
            assert clusters == sorted(set(clusters)) and 0 <= clusters[0] and clusters[-1] < size, row
            # Every label is in one cluster of each level.
            assert sum(counts) == len(row["labels"]) and len(counts) == len(clusters), row
        assert len(row["feature_indices"]) == len(row["feature_values"]), row
        assert row["generation"] == doc["generation"] and not row["deleted"], row
    nested = duckdb.sql(f"""SELECT sum(list_sum(list_transform(target_counts, lambda c: list_sum(c)))), sum(len(labels))
                            FROM '{folder}/dataset/*.parquet'""").fetchall()[0]
    assert nested[0] == nested[1] * len(levels), nested

    for part in doc["embeddings"]:
        check_file(store, part, EMBEDDINGS)
    embeddings = pa.dataset.dataset(f"{folder}/embeddings").to_table()
    ids = embeddings["node_id"].to_pylist()
    assert len(ids) == len(set(ids)) == doc["graph"]["nodes"], len(ids)
    assert set(embeddings["generation"].to_pylist()) == {doc["generation"]}
    dims = duckdb.sql(f"SELECT min(len(embedding)), max(len(embedding)) FROM '{folder}/embeddings/*.parquet' WHERE status <> 'no_text'").fetchall()[0]
    assert dims == (doc["encoder"]["dim"],) * 2, dims
    joined = duckdb.sql(f"""SELECT count(*) FROM '{folder}/embeddings/*.parquet' e
                            JOIN '{folder}/dataset/*.parquet' d USING (node_id)""").fetchall()[0][0]
    assert joined == dataset.num_rows, joined
    print(f"{batches} rows in batches, {dataset.num_rows} in the training set, {len(ids)} embeddings")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
