#!/usr/bin/env python3
"""Opens exports with pyarrow and DuckDB, and compares types, counts and times
with their documents. The graph of every export is read back by both, which
must agree. Prints what it found, or fails.

usage: check_export.py EXPORT...
"""
import datetime
import json
import os
import sys

import duckdb
import pyarrow as pa
import pyarrow.dataset

from check_store import EMBEDDINGS, ROWS, check_file


def check(folder):
    with open(f"{folder}/export.json") as f:
        doc = json.load(f)
    for part in doc["rows"]:
        check_file(folder, part, ROWS)
    for part in doc.get("embeddings", []):
        check_file(folder, part, EMBEDDINGS)

    rows = pa.dataset.dataset(f"{folder}/rows").to_table()
    assert rows.num_rows == doc["nodes"] + doc["deleted"] == sum(p["rows"] for p in doc["rows"]), (rows.num_rows, doc)
    ids = rows["node_id"].to_pylist()
    assert len(set(ids)) == len(ids)
    live = {r["node_id"]: r for r in rows.to_pylist() if not r["deleted"]}
    assert len(live) == doc["nodes"] > 0 and sum(len(r["labels"]) for r in live.values()) == doc["links"]
    if "as_of" in doc:
        as_of = datetime.datetime.fromisoformat(doc["as_of"].replace("Z", "+00:00"))
        assert max(rows["event_time"].to_pylist()) <= as_of, as_of

    again = duckdb.sql(f"SELECT node_id, text, labels FROM '{folder}/rows/*.parquet' WHERE NOT deleted").fetchall()
    assert {i: (t, l) for i, t, l in again} == {i: (r["text"], r["labels"]) for i, r in live.items()}

    if "embeddings" not in doc:
        assert not os.path.exists(f"{folder}/embeddings") and "generation" not in doc
    else:
        # The query of docs/format/export.md, with the nodes without a vector.
        joined = duckdb.sql(f"""SELECT r.node_id, e.generation, e.space, e.status, len(e.embedding)
            FROM '{folder}/rows/*.parquet' r JOIN '{folder}/embeddings/*.parquet' e USING (node_id)
            WHERE NOT r.deleted""").fetchall()
        assert {j[0] for j in joined} == set(live) and len(joined) == len(live)
        assert {j[1:3] for j in joined} == {(doc["generation"], doc["space"])}
        assert len({j[4] for j in joined if j[3] != "no_text"}) == 1
        vectors = pa.dataset.dataset(f"{folder}/embeddings").to_table()
        assert vectors.num_rows == len(live)
    print(f"{os.path.basename(folder)}: {doc['nodes']} nodes, {doc['deleted']} deleted, {doc['links']} links")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for export in sys.argv[1:]:
        check(export)
