"""GraphZoom (Deng et al., 2020): vectors of a small graph, brought back to the large one.

Features and links are fused, nodes that the links hold together are merged level by level, the coarsest graph gets
vectors from its links alone (here NetMF, Qiu et al., 2018: what DeepWalk converges to, in closed form), and each finer
level smoothes what it inherits. For graphs of some ten thousand nodes: the nearest neighbours are exact.
"""

from __future__ import annotations

from typing import List, Tuple

import torch
from torch import Tensor


def adjacency(edges: Tensor, weight: Tensor, nodes: int) -> Tensor:
    return torch.sparse_coo_tensor(edges, weight, (nodes, nodes)).coalesce()


def fuse(x: Tensor, edges: Tensor, neighbours: int, batch: int = 4096) -> Tensor:
    """The links, and those to the nearest neighbours by cosine, weighted by it."""
    unit = torch.nn.functional.normalize(x)
    found: List[Tensor] = []
    weights: List[Tensor] = []
    for first in range(0, len(x), batch):
        cosine = unit[first:first + batch] @ unit.T
        rows = torch.arange(first, first + len(cosine))
        cosine[rows - first, rows] = -2  # not itself
        top = cosine.topk(min(neighbours, len(x) - 1), 1)
        ends = torch.stack([rows.repeat_interleave(top.indices.shape[1]), top.indices.flatten()])
        found += [ends, ends.flip(0)]
        weights += [top.values.flatten().clamp(min=0)] * 2
    all_weights = torch.cat([torch.ones(edges.shape[1]), *weights])
    return adjacency(torch.cat([edges, *found], 1), all_weights, len(x))


def smooth(a: Tensor, loop: float, x: Tensor, times: int) -> Tensor:
    """The low-pass filter D^-½ (A + loop·D) D^-½, where D are the degrees with that loop."""
    degree = torch.sparse.sum(a, 1).to_dense()
    own = loop * degree
    scale = (degree + own).clamp(min=1e-9).rsqrt().unsqueeze(1)
    for _ in range(times):
        x = scale * (torch.sparse.mm(a, scale * x) + own.unsqueeze(1) * (scale * x))
    return x


def merge(a: Tensor, vectors: int = 16) -> Tensor:
    """The node of the next level of every node. Ends of a link are merged if random signals are alike at both, once
    smoothed: then the coarse graph keeps the low frequencies of the fine one."""
    nodes = a.shape[0]
    probe = smooth(a, 0.1, torch.randn(nodes, vectors), 10)
    probe = torch.nn.functional.normalize(probe - probe.mean(0))
    ends = a.indices()
    ends = ends[:, ends[0] < ends[1]]
    alike = (probe[ends[0]] * probe[ends[1]]).sum(1) ** 2
    into = [-1] * nodes
    count = 0
    for u, v in ends[:, alike.argsort(descending=True, stable=True)].T.tolist():
        if into[u] < 0 and into[v] < 0:
            into[u] = into[v] = count
            count += 1
    for u in range(nodes):
        if into[u] < 0:
            into[u] = count
            count += 1
    return torch.tensor(into)


def coarsen(a: Tensor, into: Tensor) -> Tensor:
    """The graph of the merged nodes. No weight is lost: links inside a node become its loop."""
    return adjacency(into[a.indices()], a.values(), int(into.max()) + 1)


def netmf(a: Tensor, dim: int, window: int = 5) -> Tensor:
    """log max(1, vol/window Σ_r (D^-1 A)^r D^-1), in its dim largest singular vectors."""
    dense = a.to_dense()
    degree = dense.sum(1).clamp(min=1e-9)
    walk = dense / degree.unsqueeze(1)
    power, total = torch.eye(len(dense)), torch.zeros_like(dense)
    for _ in range(window):
        power = power @ walk
        total += power
    matrix = (dense.sum() / window * total / degree).clamp(min=1).log()
    u, s, _ = torch.linalg.svd(matrix)
    kept = u[:, :dim] * s[:dim].sqrt()
    return torch.nn.functional.pad(kept, (0, max(0, dim - kept.shape[1])))


def levels_of(a: Tensor, levels: int, smallest: int) -> Tuple[List[Tensor], List[Tensor]]:
    """The graphs from fine to coarse, and what leads from each to the next."""
    graphs: List[Tensor] = [a]
    maps: List[Tensor] = []
    while len(maps) < levels and graphs[-1].shape[0] > smallest:
        into = merge(graphs[-1])
        if int(into.max()) + 1 == len(into):
            break  # no links are left
        maps.append(into)
        graphs.append(coarsen(graphs[-1], into))
    return graphs, maps


def graphzoom(x: Tensor, edges: Tensor, dim: int, levels: int = 2, neighbours: int = 5, loop: float = 0.1,
              smallest: int = 64) -> Tensor:
    graphs, maps = levels_of(fuse(x, edges, neighbours), levels, smallest)
    z = netmf(graphs[-1], dim)
    for a, into in zip(reversed(graphs[:-1]), reversed(maps)):
        z = smooth(a, loop, z[into], 2)
    return z
