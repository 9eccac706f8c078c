"""Asks engines that filter the questions that `cmd/bench/similar -filters` has written, on one processor.

    taskset -c 0 python3 cmd/bench/similar/filters.py DIR DIM PEER

PEER is faiss-ivf, faiss-hnsw, qdrant, lancedb or pgvector. For each place and share, the setting is the cheapest of a
short list that finds 0.98 of the truth, which giantstream must do with one setting for all; else the best of the list.
FAISS gets those that match for nothing, as a bitmap. Each question is asked three times, and the shortest time counts.
"""

import json
import os
import shutil
import sys
import tempfile
import time

import numpy as np

import peers

K = 10
ENOUGH = 0.98
PLACES = ["anywhere", "near", "far"]
SHARES = [1, 0.5, 0.1, 0.01, 0.001, 0.0001]


class Faiss:
    """An index of FAISS with a bitmap as selector."""

    def __init__(self, kind, vectors, numbers):
        import faiss

        self.faiss, self.kind, self.numbers = faiss, kind, numbers
        self.settings = {
            "ivf": (4, 16, 64, 128, 256, 512, 1024, 4000),
            "hnsw": (64, 256, 1024, 4096, 16384),
        }[kind]
        make = {"ivf": peers.faiss_ivf, "hnsw": peers.faiss_hnsw}[kind]
        _, _, _, self.index = make(vectors)

    def ask(self, query, column, below, setting):
        faiss = self.faiss
        bitmap = np.packbits(self.numbers[column] < below, bitorder="little")
        selector = faiss.IDSelectorBitmap(bitmap)
        if self.kind == "ivf":
            parameters = faiss.SearchParametersIVF(sel=selector, nprobe=setting)
        else:
            parameters = faiss.SearchParametersHNSW(sel=selector, efSearch=setting)
        start = time.perf_counter()
        found = self.index.search(query[None], K, params=parameters)[1][0]
        return [i for i in found.tolist() if i >= 0], time.perf_counter() - start


class Qdrant:
    """Qdrant's engine in this process, with 8 bits, and an index on each number."""

    settings = (16, 64, 256, 1024)

    def __init__(self, vectors, numbers):
        import qdrant_edge as q

        self.q = q
        self.folder = tempfile.mkdtemp()
        config = q.EdgeConfig(
            vectors={"v": q.EdgeVectorParams(size=vectors.shape[1], distance=q.Distance.Dot)},
            quantization_config=q.ScalarQuantizationConfig(type=q.ScalarType.Int8, always_ram=True),
        )
        self.shard = q.EdgeShard.create(self.folder, config)
        for c in range(len(numbers)):
            self.shard.update(q.UpdateOperation.create_field_index(f"c{c}", q.PayloadSchemaType.Integer))
        for low in range(0, len(vectors), 5_000):
            high = min(len(vectors), low + 5_000)
            payloads = np.asarray(numbers[:, low:high]).T.tolist()
            rows = np.asarray(vectors[low:high]).tolist()
            self.shard.update(
                q.UpdateOperation.upsert_points(
                    [
                        q.Point(id=low + i, vector={"v": rows[i]}, payload={f"c{c}": v for c, v in enumerate(payload)})
                        for i, payload in enumerate(payloads)
                    ]
                )
            )
        self.shard.optimize()

    def ask(self, query, column, below, setting):
        q = self.q
        request = q.QueryRequest(
            query=q.Query.Nearest(query.tolist(), using="v"),
            filter=q.Filter(must=[q.FieldCondition(key=f"c{column}", range=q.RangeFloat(lt=below))]),
            limit=K,
            params=q.SearchParams(hnsw_ef=setting, exact=False),
            with_payload=False,
        )
        start = time.perf_counter()
        found = self.shard.query(request)
        return [p.id for p in found], time.perf_counter() - start

    def close(self):
        shutil.rmtree(self.folder)


class Lance:
    """LanceDB with HNSW of 8 bits, refined by the vectors, and an index on each number."""

    settings = ((20, 2), (50, 5), (200, 10), (1000, 20))

    def __init__(self, vectors, numbers):
        import lancedb
        import pyarrow as pa
        from lancedb.index import BTree, HnswSq

        self.folder = tempfile.mkdtemp()
        n, dim = vectors.shape

        def batches():
            for low in range(0, n, 50_000):
                high = min(n, low + 50_000)
                flat = pa.array(np.asarray(vectors[low:high]).reshape(-1), pa.float32())
                columns = {"id": pa.array(np.arange(low, high)), "v": pa.FixedSizeListArray.from_arrays(flat, dim)}
                columns |= {f"c{c}": pa.array(np.asarray(numbers[c, low:high])) for c in range(len(numbers))}
                yield pa.RecordBatch.from_pydict(columns)

        schema = pa.schema(
            [("id", pa.int64()), ("v", pa.list_(pa.float32(), dim))]
            + [(f"c{c}", pa.int32()) for c in range(len(numbers))]
        )
        self.table = lancedb.connect(self.folder).create_table("t", batches(), schema=schema)
        self.table.create_index("v", config=HnswSq(distance_type="dot"))
        for c in range(len(numbers)):
            self.table.create_index(f"c{c}", config=BTree())

    def ask(self, query, column, below, setting):
        nprobes, refine = setting
        start = time.perf_counter()
        found = (
            self.table.search(query, vector_column_name="v")
            .distance_type("dot")
            .where(f"c{column} < {below}")
            .nprobes(nprobes)
            .refine_factor(refine)
            .select(["id", "_distance"])
            .limit(K)
            .to_arrow()
        )
        took = time.perf_counter() - start
        return found["id"].to_pylist(), took

    def close(self):
        shutil.rmtree(self.folder)


class Pgvector:
    """PostgreSQL with pgvector's HNSW, its iterative scan where it has one (0.8), and an index on each number."""

    settings = (40, 100, 400, 1000)

    def __init__(self, vectors, numbers):
        import pgserver
        import psycopg

        self.folder = tempfile.mkdtemp()
        self.server = pgserver.get_server(self.folder)
        self.db = psycopg.connect(self.server.get_uri(), autocommit=True)
        n, dim = vectors.shape
        columns = ", ".join(f"c{c} int" for c in range(len(numbers)))
        self.db.execute("CREATE EXTENSION vector")
        self.db.execute(f"CREATE TABLE t (id int PRIMARY KEY, v vector({dim}), {columns})")
        with self.db.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
            for i in range(n):
                copy.write_row([i, "[" + ",".join(f"{x:.5g}" for x in vectors[i]) + "]"] + numbers[:, i].tolist())
        self.db.execute("SET maintenance_work_mem = '4GB'")
        self.db.execute("CREATE INDEX ON t USING hnsw (v vector_ip_ops)")
        for c in range(len(numbers)):
            self.db.execute(f"CREATE INDEX ON t (c{c})")
        self.db.execute("VACUUM ANALYZE t")
        self.version = self.db.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()[0]
        if tuple(map(int, self.version.split("."))) >= (0, 8, 0):
            self.db.execute("SET hnsw.iterative_scan = strict_order")
            self.db.execute("SET hnsw.max_scan_tuples = 1000000000")
        self.set = None

    def ask(self, query, column, below, setting):
        if self.set != setting:
            self.db.execute(f"SET hnsw.ef_search = {setting}")
            self.set = setting
        vector = "[" + ",".join(f"{x:.5g}" for x in query) + "]"
        start = time.perf_counter()
        rows = self.db.execute(
            f"SELECT id FROM t WHERE c{column} < %s ORDER BY v <#> %s::vector LIMIT {K}", (below, vector)
        ).fetchall()
        return [r[0] for r in rows], time.perf_counter() - start

    def close(self):
        self.db.close()
        self.server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)


def measure(engine, vectors, queries, questions, share_at, below, setting):
    took, hits, wanted, fewest = [], 0, 0, K
    for q in questions:
        shortest = float("inf")
        for _ in range(3):
            found, t = engine.ask(queries[q["query"]], q["column"], below, setting)
            shortest = min(shortest, t)
        took.append(1e3 * shortest)
        fewest = min(fewest, len(found))
        truth = q["truth"][share_at]
        hits += peers.count_nearest(found, truth, queries[q["query"]], vectors)
        wanted += len(truth)
    return {
        "recall_at_10": hits / wanted,
        "fewest": fewest,
        "questions_per_s": 1e3 / float(np.mean(took)),
        "p50_ms": float(np.quantile(took, 0.5)),
        "p99_ms": float(np.quantile(took, 0.99)),
        "setting": setting,
    }


def main():
    folder, dim, peer = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    load = lambda name, kind: np.memmap(os.path.join(folder, name), dtype=kind, mode="r")
    vectors = load("vectors.f32", np.float32).reshape(-1, dim)
    queries = np.array(load("queries.f32", np.float32).reshape(-1, dim))
    numbers = load("numbers.i32", np.int32).reshape(-1, len(vectors))
    with open(os.path.join(folder, "asked.json")) as f:
        asked = json.load(f)
    start = time.perf_counter()
    engine = {
        "faiss-ivf": lambda *a: Faiss("ivf", *a),
        "faiss-hnsw": lambda *a: Faiss("hnsw", *a),
        "qdrant": Qdrant,
        "lancedb": Lance,
        "pgvector": Pgvector,
    }[peer](vectors, numbers)
    print(json.dumps({"name": peer, "build_s": time.perf_counter() - start, "memory_mib": peers.resident()}), flush=True)
    for place, words in enumerate(PLACES):
        for at, share in enumerate(SHARES):
            questions = [q for q in asked if q["place"] == place]
            best = None
            for setting in engine.settings:
                result = measure(engine, vectors, queries, questions[:40], at, int(share * len(vectors)), setting)
                if best is None or result["recall_at_10"] > best["recall_at_10"]:
                    best = result
                if best["recall_at_10"] >= ENOUGH or result["p50_ms"] > 1000:
                    break
            result = measure(engine, vectors, queries, questions, at, int(share * len(vectors)), best["setting"])
            print(json.dumps({"name": peer, "matches_lie": words, "share": share, **result}), flush=True)
    if hasattr(engine, "close"):
        engine.close()


if __name__ == "__main__":
    main()
