"""Minibatches of a graph in a few lines of PyTorch, so that no compiled extension (pyg-lib, torch-sparse) is needed.

A batch is the features of its nodes, its links, their weights, the positions of the nodes of the loss, and the labels
and weights of these.
"""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

import torch
from torch import Tensor

from problem import Problem

Batch = Tuple[Tensor, Tensor, Optional[Tensor], Tensor, Tensor, Optional[Tensor]]


class Neighbours:
    """The links by their far end, to draw from."""

    def __init__(self, edges: Tensor, nodes: int) -> None:
        order = edges[1].argsort(stable=True)
        self.source = edges[0][order]
        self.degree = torch.bincount(edges[1], minlength=nodes)
        self.start = self.degree.cumsum(0) - self.degree

    def draw(self, nodes: Tensor, fanout: int) -> Tensor:
        """Links (2×k) into the nodes, fanout for each that has a neighbour, with replacement."""
        nodes = nodes[self.degree[nodes] > 0]
        pick = (torch.rand(len(nodes), fanout) * self.degree[nodes, None]).long() + self.start[nodes, None]
        return torch.stack([self.source[pick].flatten(), nodes.repeat_interleave(fanout)])


def relabel(nodes: Tensor, edges: Tensor, n: int) -> Tuple[Tensor, Tensor]:
    """Edges in positions of nodes; those that lead elsewhere are left out."""
    place = torch.full((n,), -1)
    place[nodes] = torch.arange(len(nodes))
    edges = place[edges]
    return edges, edges.ge(0).all(0)


def neighbourhoods(p: Problem, batch: int = 256, fanout: Tuple[int, ...] = (10, 10)) -> Iterator[Batch]:
    """GraphSAGE (Hamilton et al., 2017): minibatches of nodes with neighbours drawn around them."""
    near = Neighbours(p.edges, p.nodes)
    while True:
        for seeds in p.train[torch.randperm(len(p.train))].split(batch):
            front, found = seeds, []
            for k in fanout:
                found.append(near.draw(front, k))
                front = torch.cat([front, found[-1][0]]).unique()
            edges = torch.cat(found, 1).unique(dim=1)
            local, _ = relabel(front, edges, p.nodes)
            at, _ = relabel(front, seeds, p.nodes)
            yield p.x[front], local, None, at, p.y[seeds], None


def subgraphs(p: Problem, roots: int = 0, length: int = 2, counted: int = 50) -> Iterator[Batch]:
    """GraphSAINT (Zeng et al., 2020) with random walks: subgraphs whose loss and links are weighted by how
    often a node and a link are drawn, so that both are right on average."""
    n, near = p.nodes, Neighbours(p.edges, p.nodes)
    roots = roots or max(n // 8, 32)

    def walk() -> Tuple[Tensor, Tensor, Tensor]:
        at = torch.randint(n, (roots,))
        seen = [at]
        for _ in range(length):
            at = near.draw(at.unique(), 1)[0]
            seen.append(at)
        nodes = torch.cat(seen).unique()
        edges, inside = relabel(nodes, p.edges, n)
        return nodes, edges[:, inside], inside

    node_count, link_count = torch.zeros(n), torch.zeros(p.edges.shape[1])
    for _ in range(counted):
        nodes, _, inside = walk()
        node_count[nodes] += 1
        link_count[inside] += 1
    # A link drawn given its far end, over the degree: the mean over neighbours, without bias.
    link_weight = node_count[p.edges[1]] / link_count.clamp(min=1) * p.mean
    loss_weight = counted / node_count.clamp(min=1)
    loss_weight /= loss_weight.mean()
    trains = torch.zeros(n, dtype=torch.bool)
    trains[p.train] = True
    while True:
        nodes, edges, inside = walk()
        at = torch.nonzero(trains[nodes]).flatten()
        if len(at):
            yield p.x[nodes], edges, link_weight[inside], at, p.y[nodes[at]], loss_weight[nodes[at]]


def whole(p: Problem) -> Iterator[Batch]:
    while True:
        yield p.x, p.edges, None, p.train, p.y[p.train], None
