"""Measures FAISS and USearch on the files that cmd/bench/similar has written, one thread each.

    python3 cmd/bench/similar/peers.py DIR DIM PEER

PEER is faiss-ivf, faiss-hnsw or usearch. Each prints a line of JSON, like the Go program. Their settings are the
cheapest of a short list that reaches a recall of 0.98, as giantstream's is measured to; else the best of the list.
"""

import json
import os
import sys
import time

import numpy as np

K = 10
ENOUGH = 0.98


def resident():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmRSS"))


def count_nearest(found, truth, query, vectors):
    """Counts those found that are as near as the farthest of the truth. Many vectors may be equally near."""
    return int((vectors[found] @ query >= vectors[truth[-1]] @ query - 1e-6).sum())


def measure(search, vectors, queries, truth):
    took, hits = [], 0
    for q, t in zip(queries, truth):
        start = time.perf_counter()
        found = search(q)
        took.append(time.perf_counter() - start)
        hits += count_nearest(found, t, q, vectors)
    took = np.array(took)
    return {
        "recall_at_10": hits / truth.size,
        "queries_per_s": len(took) / took.sum(),
        "p99_ms": 1e3 * float(np.quantile(took, 0.99)),
    }


def faiss_ivf(vectors):
    import faiss

    faiss.omp_set_num_threads(1)
    n, dim = vectors.shape
    cells = int(4 * np.sqrt(n))
    index = faiss.index_factory(dim, f"IVF{cells},SQ8", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors[:: max(1, n // (40 * cells))])
    for part in range(0, n, 100_000):
        index.add(vectors[part : part + 100_000])

    def setting(probes):
        index.nprobe = probes
        return f"IVF{cells},SQ8, nprobe {probes}"

    return (1, 2, 4, 8, 16, 32, 64, 128), setting, lambda q: index.search(q[None], K)[1][0], index


def faiss_hnsw(vectors):
    import faiss

    faiss.omp_set_num_threads(os.cpu_count())
    index = faiss.index_factory(vectors.shape[1], "HNSW16,SQ8", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors[::10])
    index.add(vectors)
    faiss.omp_set_num_threads(1)

    def setting(ef):
        index.hnsw.efSearch = ef
        return f"HNSW16,SQ8, efSearch {ef}"

    return (16, 32, 64, 128, 256), setting, lambda q: index.search(q[None], K)[1][0], index


def usearch(vectors):
    from usearch.index import Index

    index = Index(ndim=vectors.shape[1], metric="cos", dtype="i8", connectivity=16)
    index.add(np.arange(len(vectors)), vectors, threads=os.cpu_count())

    def setting(ef):
        index.expansion_search = ef
        return f"i8, connectivity 16, expansion {ef}"

    return (16, 32, 64, 128, 256), setting, lambda q: index.search(q, K, threads=1).keys, index


def main():
    folder, dim, peer = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    load = lambda name, kind: np.memmap(os.path.join(folder, name), dtype=kind, mode="r")
    vectors = load("vectors.f32", np.float32).reshape(-1, dim)
    queries = np.array(load("queries.f32", np.float32).reshape(-1, dim))
    truth = np.array(load("truth.i32", np.int32).reshape(-1, K))
    make = {"faiss-ivf": faiss_ivf, "faiss-hnsw": faiss_hnsw, "usearch": usearch}[peer]
    start = time.perf_counter()
    settings, setting, search, index = make(vectors)
    built = time.perf_counter() - start
    # The index as a file: what it holds in memory without the mapped vectors, which count as resident, too.
    path = os.path.join(folder, "index.tmp")
    if peer == "usearch":
        index.save(path)
    else:
        import faiss

        faiss.write_index(index, path)
    size = os.path.getsize(path) / 2**20
    os.remove(path)
    for s in settings:
        words = setting(s)
        result = measure(search, vectors, queries[:300], truth[:300])
        if result["recall_at_10"] >= ENOUGH:
            break
    result = measure(search, vectors, queries, truth)
    print(json.dumps({"name": peer, "build_s": built, "memory_mib": size, **result, "setting": words}), flush=True)


if __name__ == "__main__":
    main()
