#!/usr/bin/env python3
"""Opens a rows file and an embeddings file with pyarrow and DuckDB and checks
types, counts and values. Prints "ok" or fails with an AssertionError.

usage: check_parquet.py ROWS.parquet ROW_COUNT EMBEDDINGS.parquet EMBEDDING_COUNT
"""
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = {
    "node_id": pa.string(),
    "text": pa.string(),
    "class": pa.string(),
    "labels": pa.list_(pa.string()),
    "feature_indices": pa.list_(pa.int32()),
    "feature_values": pa.list_(pa.float32()),
    "targets": pa.list_(pa.list_(pa.int32())),
    "target_counts": pa.list_(pa.list_(pa.int32())),
    "generation": pa.int64(),
    "event_time": pa.timestamp("us", tz="UTC"),
    "deleted": pa.bool_(),
    "attributes": pa.string(),
    "link_ends": pa.list_(pa.string()),
    "link_weights": pa.list_(pa.float32()),
    "link_times": pa.list_(pa.timestamp("us", tz="UTC")),
    "link_kinds": pa.list_(pa.string()),
}
ROWS_DUCKDB = ["VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR[]", "INTEGER[]", "FLOAT[]", "INTEGER[][]", "INTEGER[][]",
               "BIGINT", "TIMESTAMP WITH TIME ZONE", "BOOLEAN", "VARCHAR", "VARCHAR[]", "FLOAT[]", "TIMESTAMP WITH TIME ZONE[]",
               "VARCHAR[]"]
EMBEDDINGS = {
    "node_id": pa.string(),
    "embedding": pa.list_(pa.float32()),
    "generation": pa.int64(),
    "space": pa.int64(),
    "event_time": pa.timestamp("us", tz="UTC"),
    "shard": pa.int32(),
    "seq": pa.int64(),
    "status": pa.string(),
}
EMBEDDINGS_DUCKDB = ["VARCHAR", "FLOAT[]", "BIGINT", "BIGINT", "TIMESTAMP WITH TIME ZONE", "INTEGER", "BIGINT", "VARCHAR"]


def same(a, b):
    """Types are equal but for the names of list elements."""
    if pa.types.is_list(a) and pa.types.is_list(b):
        return same(a.value_type, b.value_type)
    return a.equals(b)


def check_types(path, want, want_duckdb, count):
    table = pq.read_table(path)
    assert table.column_names == list(want), table.column_names
    for name, typ in want.items():
        assert same(table.schema.field(name).type, typ), (name, table.schema.field(name).type, typ)
    assert table.num_rows == count, (table.num_rows, count)

    described = duckdb.sql(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
    assert [d[0] for d in described] == list(want), described
    assert [d[1] for d in described] == want_duckdb, described
    assert duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall()[0][0] == count
    return table


def main(rows, row_count, embeddings, embedding_count):
    table = check_types(rows, ROWS, ROWS_DUCKDB, int(row_count))
    assert pq.read_metadata(rows).metadata[b"giantstream.format"] == b"rows/1"
    first = table.slice(0, 1).to_pylist()[0]
    assert first["node_id"] == "a" and first["class"] == "shoes" and first["labels"] == ["b", "c"], first
    assert first["targets"] == [[0], [1, 3], [2, 6, 9]], first
    assert first["target_counts"] == [[2], [1, 1], [1, 2, 1]], first
    assert first["feature_values"] == [0.5, 0.25], first
    assert first["event_time"].isoformat() == "2023-11-14T22:13:20.000001+00:00", first
    assert (first["link_ends"], first["link_kinds"], first["link_weights"]) == (["b"], ["kind"], [2.5]), first
    assert [t.isoformat() for t in first["link_times"]] == ["2023-11-14T22:13:20.000002+00:00"], first
    second = table.slice(1, 1).to_pylist()[0]
    assert second["link_ends"] == second["link_weights"] == second["link_times"] == [], second
    assert second["class"] is None and second["targets"] == [[0], [], [5]], second

    # Every label sits in one cluster per level: per level, counts add up to the labels.
    got = duckdb.sql(f"""SELECT len(targets), targets[2], list_sum(target_counts[3]), len(labels)
                         FROM '{rows}' WHERE node_id = 'a'""").fetchall()[0]
    assert got == (3, [1, 3], 4, 2), got
    nested = duckdb.sql(f"SELECT sum(list_sum(list_transform(targets, lambda t: len(t)))) FROM '{rows}'").fetchall()[0][0]
    assert nested == sum(len(t) for row in table["targets"].to_pylist() for t in row), nested

    table = check_types(embeddings, EMBEDDINGS, EMBEDDINGS_DUCKDB, int(embedding_count))
    assert pq.read_metadata(embeddings).metadata[b"giantstream.format"] == b"embeddings/2"
    assert {len(e) for e in table["embedding"].to_pylist()} == {4}
    assert table["status"].to_pylist() == ["text"] * int(embedding_count)
    got = duckdb.sql(f"SELECT embedding, shard, seq, generation FROM '{embeddings}' WHERE node_id = 'a'").fetchall()[0]
    assert got == ([0.5, -1.0, 0.25, 0.0], 2, 7, 3), got
    print("ok")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
