"""A generation of giantstream as tensors: embeddings, links, classes, plain features, splits."""

import csv
import glob
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, to_undirected


def load(generation, plain=0):
    """x: the embeddings; or, with plain > 0, TF-IDF brought to so many dimensions by a truncated
    SVD (LSA), which knows nothing of the graph. Nodes are those of the training set, ascending by id."""
    wanted = ["node_id", "class", "labels"] + (["feature_indices", "feature_values"] if plain else [])
    rows = read(f"{generation}/dataset", wanted)
    rows.sort(key=lambda r: r["node_id"])
    names = sorted(Counter(r["class"] for r in rows if r["class"]))
    number = {name: i for i, name in enumerate(names)}
    y = torch.tensor([number.get(r["class"], -1) for r in rows])
    at = {r["node_id"]: i for i, r in enumerate(rows)}
    ends = [(i, at[l]) for i, r in enumerate(rows) for l in r["labels"] if l in at]
    edges = to_undirected(coalesce(torch.tensor(ends, dtype=torch.long).T), num_nodes=len(rows))
    x = lsa(rows, plain) if plain else embeddings(generation, at)
    x = (x - x.mean(0)) / x.std(0).clamp(min=1e-6)
    return Data(x=x, edge_index=edges, y=y, classes=names, ids=list(at))


def read(folder, columns):
    return [r for path in sorted(glob.glob(f"{folder}/part-*.parquet")) for r in pq.read_table(path, columns=columns).to_pylist()]


def embeddings(generation, at):
    """Nodes without text have no embedding: theirs is 0, in all dimensions."""
    rows = [r for r in read(f"{generation}/embeddings", ["node_id", "embedding"]) if r["node_id"] in at and r["embedding"]]
    x = torch.zeros(len(at), len(rows[0]["embedding"]))
    for r in rows:
        x[at[r["node_id"]]] = torch.tensor(r["embedding"], dtype=torch.float)
    if isinstance(rows[0]["embedding"][0], int):  # int8: codes, whose scale goes with the length
        x = torch.nn.functional.normalize(x)
    return x


def lsa(rows, dim):
    index = np.concatenate([np.array([[i] * len(r["feature_indices"]), r["feature_indices"]], dtype=np.int64) for i, r in enumerate(rows)], axis=1)
    value = np.concatenate([np.array(r["feature_values"], dtype=np.float32) for r in rows])
    size = (len(rows), int(index[1].max()) + 1)
    matrix = torch.sparse_coo_tensor(torch.from_numpy(index), torch.from_numpy(value), size).coalesce()
    torch.manual_seed(0)
    u, s, _ = torch.svd_lowrank(matrix, q=min(dim, *size), niter=2)
    return u * s


def split(y, seed, train=0.1, validation=0.1):
    """Random nodes of those that have a class: (train, validation, test)."""
    nodes = torch.nonzero(y >= 0).flatten()
    nodes = nodes[torch.randperm(len(nodes), generator=torch.Generator().manual_seed(seed))]
    a, b = int(train * len(nodes)), int((train + validation) * len(nodes))
    return nodes[:a], nodes[a:b], nodes[b:]


def official(path, ids, y):
    """The parts of a split.csv, lines of id,part as `giantstream import ogb` writes them: (train, validation, test).
    Ids that are not among the nodes, and nodes without class, are left out."""
    at, parts, taken = {id: i for i, id in enumerate(ids)}, {"train": [], "valid": [], "test": []}, set()
    with open(path, newline="") as file:
        for number, row in enumerate(csv.reader(file), 1):
            if number == 1 and row == ["id", "split"]:
                continue
            if len(row) != 2 or row[1] not in parts:
                raise SystemExit(f"{path}, line {number}: want id,part with the part train, valid or test")
            if row[0] in taken:
                raise SystemExit(f"{path}, line {number}: node {row[0]} for the second time")
            taken.add(row[0])
            if row[0] in at and y[at[row[0]]] >= 0:
                parts[row[1]].append(at[row[0]])
    if not all(parts.values()):
        raise SystemExit(f"{path}: no nodes with a class in {', '.join(k for k, v in parts.items() if not v)}")
    return tuple(torch.tensor(sorted(nodes)) for nodes in parts.values())
