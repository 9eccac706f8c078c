"""Prepares the split, or runs PECOS's XR-Linear on it, and prints the figures as JSON. compare.py runs this."""

import argparse
import json
import os
import sys
import time

import numpy as np
import scipy.sparse as smat

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "featurize"))
import measure  # noqa: E402
from pecos_stage import adjacency, fit, load, save, texts  # noqa: E402


def prepare(data, work, threads):
    """Hides a tenth of the rows. Both sides get PECOS's TF-IDF."""
    corpus = texts(data)
    x, y = fit(corpus, threads).predict(corpus, threads=threads), adjacency(data)
    hidden = np.random.default_rng(1).random(x.shape[0]) < 0.1
    for name, rows in (("train", ~hidden), ("test", hidden)):
        save(work, "x." + name, x[rows])
        save(work, "y." + name, y[rows])
    return {"train": int((~hidden).sum()), "test": int(hidden.sum()), "features": x.shape[1], "positives": int(y[~hidden].nnz)}


def chain(work, y):
    """The tree that giantstream wrote: one file per level with the cluster of every label. Labels outside the tree are left out."""
    from pecos.xmc.base import ClusterChain

    levels = [np.fromfile(f"{work}/tree.{t}", np.int32) for t in range(len([f for f in os.listdir(work) if f.startswith("tree.")]))]
    keep = np.flatnonzero(levels[-1] >= 0)
    matrices, above = [], np.zeros(0, np.int32)
    for t, cluster in enumerate(levels):
        size = int(cluster.max()) + 1
        parent = np.zeros(size, np.int32)
        if t:
            parent[cluster[keep]] = above[keep]
        matrices.append(smat.csc_matrix((np.ones(size, np.float32), (np.arange(size), parent)), shape=(size, int(parent.max()) + 1)))
        above = cluster
    member = smat.csc_matrix((np.ones(len(keep), np.float32), (np.arange(len(keep)), above[keep])), shape=(len(keep), int(above.max()) + 1))
    return ClusterChain(matrices + [member]), keep


def precision(best, y, ks=(1, 3, 5)):
    hits = np.array([[label in set(y.indices[y.indptr[i] : y.indptr[i + 1]]) for label in row] + [False] * (5 - len(row)) for i, row in enumerate(best)])
    return [float(hits[:, :k].mean()) for k in ks]


def run(work, threads, negatives):
    from pecos.xmc.xlinear.model import XLinearModel

    x, y, xt, yt = (load(work, n) for n in ("x.train", "y.train", "x.test", "y.test"))
    y.data[:] = 1
    clusters, keep = chain(work, y)
    y = y[:, keep].tocsc()
    with measure.Stage() as s:
        model = XLinearModel.train(x, y, C=clusters, negative_sampling_scheme=negatives, threads=threads, beam_size=10, only_topk=20)
    out = dict(s.took)
    folder = os.path.join(work, "pecos.model")
    model.save(folder)
    model = XLinearModel.load(folder, is_predict_only=True)
    start = time.perf_counter()
    p = model.predict(xt, beam_size=10, only_topk=5, threads=1)
    out["batch_ms"] = (time.perf_counter() - start) / xt.shape[0] * 1e3
    best = [keep[p.indices[p.indptr[i] : p.indptr[i + 1]][np.argsort(-p.data[p.indptr[i] : p.indptr[i + 1]], kind="stable")]] for i in range(p.shape[0])]
    out["precision"] = precision(best, yt)
    rows = [xt[i] for i in range(2000)]
    times = []
    for r in rows:
        start = time.perf_counter()
        model.predict(r, beam_size=10, only_topk=5, threads=1)
        times.append(time.perf_counter() - start)
    out["single_ms"] = float(np.median(times)) * 1e3
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=["prepare", "run"])
    parser.add_argument("--data")
    parser.add_argument("--work", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--negatives", default="tfn", help="tfn, or tfn+man")
    args = parser.parse_args()
    if args.stage == "prepare":
        os.makedirs(args.work, exist_ok=True)
        out = prepare(args.data, args.work, args.threads)
    else:
        out = run(args.work, args.threads, args.negatives)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
