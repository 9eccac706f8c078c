"""Runs one stage of PECOS (libpecos) in this process and prints what it took as JSON.

A development tool: compare.py runs this and giantstream.
"""

import argparse
import gzip
import json
import os

import numpy as np
import scipy.sparse as smat

import measure

# GIANT's three vectorizers (giant-xrt, proc_data_xrt.py).
VECTORIZERS = [
    {"ngram_range": [1, 1], "max_feature": 1_000_000, "max_df_ratio": 0.98, "analyzer": "word"},
    {"ngram_range": [2, 2], "max_feature": 3_000_000, "max_df_ratio": 0.98, "analyzer": "word"},
    {"ngram_range": [3, 3], "max_feature": 200_000, "max_df_ratio": 0.98, "analyzer": "char_wb"},
]
LEAVES = 1024


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)


def texts(data):
    return [node["text"] for node in lines(os.path.join(data, "nodes.jsonl.gz"))]


def fit(corpus, threads):
    from pecos.utils.featurization.text.vectorizers import Vectorizer

    vectorizers = [dict(v, threads=threads) for v in VECTORIZERS]
    config = {"type": "tfidf", "kwargs": {"base_vect_configs": vectorizers, "threads": threads}}
    return Vectorizer.train(corpus, config, dtype=np.float32)


def adjacency(data):
    """The symmetric 0/1 matrix of the edges between nodes, no self-loops."""
    number = {node["id"]: i for i, node in enumerate(lines(os.path.join(data, "nodes.jsonl.gz")))}
    ends = [(number.get(e["src"]), number.get(e["dst"])) for e in lines(os.path.join(data, "edges.jsonl.gz"))]
    a, b = np.array([(i, j) for i, j in ends if i is not None and j is not None and i != j], np.int32).T
    rows, cols = np.concatenate([a, b]), np.concatenate([b, a])
    y = smat.csr_matrix((np.ones(len(rows), np.float32), (rows, cols)), shape=(len(number), len(number)))
    y.data[:] = 1
    return y


def save(work, name, m):
    """Writes a CSR matrix as raw arrays, which the Go side also reads."""
    m = m.tocsr()
    m.sort_indices()
    np.array(m.shape, np.int64).tofile(os.path.join(work, name + ".shape"))
    m.indptr.astype(np.int64).tofile(os.path.join(work, name + ".start"))
    m.indices.astype(np.int32).tofile(os.path.join(work, name + ".index"))
    m.data.astype(np.float32).tofile(os.path.join(work, name + ".value"))


def load(work, name):
    shape = np.fromfile(os.path.join(work, name + ".shape"), np.int64)
    start = np.fromfile(os.path.join(work, name + ".start"), np.int64)
    index = np.fromfile(os.path.join(work, name + ".index"), np.int32)
    value = np.fromfile(os.path.join(work, name + ".value"), np.float32)
    return smat.csr_matrix((value, index, start.astype(np.int32)), shape=tuple(shape))


def pifa(x, y, threads):
    from pecos.xmc.base import LabelEmbeddingFactory

    return LabelEmbeddingFactory.pifa(y, x, threads=threads)


def tree(z, threads, seed):
    """The leaf of every label that has features; -1 for the others."""
    from pecos.xmc.base import HierarchicalKMeans

    keep = np.flatnonzero(np.diff(z.indptr))
    # With this min_codes and max_leaf_size the last level has LEAVES clusters.
    chain = HierarchicalKMeans.gen(
        z[keep], nr_splits=2, min_codes=LEAVES, max_leaf_size=-(-len(keep) // LEAVES),
        spherical=True, kmeans_max_iter=20, threads=threads, seed=seed,
    )
    leaf = np.full(z.shape[0], -1, np.int32)
    member = chain[-1].tocsr()  # labels × clusters
    leaf[keep] = member.indices
    return leaf


def mean_cosine(z, leaf):
    """Mean over the labels of the cosine to the sum of their own leaf, in the space of z."""
    keep = np.flatnonzero(leaf >= 0)
    member = smat.csr_matrix((np.ones(len(keep), np.float32), (leaf[keep], keep)), shape=(LEAVES, z.shape[0]))
    sums = member @ z
    return float(np.sqrt(sums.multiply(sums).sum(axis=1)).sum() / len(keep))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=["prepare", "fit", "transform", "pifa", "pifa-tree", "exact-tree", "quality"])
    parser.add_argument("--data", required=True, help="folder of nodes.jsonl.gz and edges.jsonl.gz")
    parser.add_argument("--work", required=True, help="folder for matrices")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--leaves", help="file of the leaf of every label: written by the trees, read by quality")
    args = parser.parse_args()
    out = {}
    if args.stage == "prepare":
        corpus = texts(args.data)
        model = fit(corpus, args.threads)
        x, y = model.predict(corpus, threads=args.threads), adjacency(args.data)
        save(args.work, "x", x)
        save(args.work, "y", y)
        z = pifa(x, y, args.threads)
        save(args.work, "z", z)
        out = {"rows": x.shape[0], "features": x.shape[1], "x_nonzeros": int(x.nnz), "z_nonzeros": int(z.nnz), "edges": int(y.nnz)}
    elif args.stage == "fit":
        corpus = texts(args.data)
        with measure.Stage() as s:
            model = fit(corpus, args.threads)
        out = dict(s.took, features=model.model.nr_features if hasattr(model.model, "nr_features") else None)
    elif args.stage == "transform":
        corpus = texts(args.data)
        model = fit(corpus, args.threads)
        with measure.Stage() as s:
            x = model.predict(corpus, threads=args.threads)
        out = dict(s.took, nonzeros=int(x.nnz))
    elif args.stage == "pifa":
        x, y = load(args.work, "x"), load(args.work, "y")
        with measure.Stage() as s:
            z = pifa(x, y, args.threads)
        out = dict(s.took, nonzeros=int(z.nnz))
    elif args.stage == "pifa-tree":
        x, y = load(args.work, "x"), load(args.work, "y")
        with measure.Stage() as s:
            leaf = tree(pifa(x, y, args.threads), args.threads, args.seed)
        leaf.tofile(args.leaves)
        out = s.took
    elif args.stage == "exact-tree":
        z = load(args.work, "z")
        with measure.Stage() as s:
            leaf = tree(z, args.threads, args.seed)
        leaf.tofile(args.leaves)
        out = s.took
    elif args.stage == "quality":
        out = {"cosine": mean_cosine(load(args.work, "z"), np.fromfile(args.leaves, np.int32))}
    print(json.dumps(out))


if __name__ == "__main__":
    main()
