"""SAGN and GAMLP: networks on what was averaged over neighbours once, before training.

They see no links while they train, so a batch is any set of nodes; that is how the papers reach ogbn-papers100M.
"""

from __future__ import annotations

import math
from typing import List

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from problem import Problem


def hops(p: Problem, x: Tensor, count: int) -> List[Tensor]:
    """x, its mean over neighbours, the mean of that, …: count + 1 of them. A node without neighbours gets 0."""
    mean = torch.sparse_coo_tensor(p.edges.flip(0), p.mean, (p.nodes, p.nodes)).coalesce()
    out = [x]
    for _ in range(count):
        out.append(torch.sparse.mm(mean, out[-1]))
    return out


def one_hot(p: Problem, also: Tensor, guess: Tensor) -> Tensor:
    """The labels of training nodes, and what was guessed of the nodes in also; other nodes have 0."""
    y = torch.zeros(p.nodes, p.classes)
    y[also] = guess[also]
    y[p.train] = F.one_hot(p.y[p.train], p.classes).float()
    return y


def perceptron(dim: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(dim, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.5),
                         nn.Linear(hidden, out))


class SAGN(nn.Module):
    """Sun et al., Scalable and Adaptive Graph Neural Networks with Self-Label-Enhanced Training, 2021: every node
    attends to its hops, from the view of its own features."""

    def __init__(self, dim: int, classes: int, hidden: int, hops: int) -> None:
        super().__init__()
        self.each = nn.ModuleList(perceptron(dim, hidden, hidden) for _ in range(hops + 1))
        self.hop, self.own = nn.Linear(hidden, 1, bias=False), nn.Linear(hidden, 1, bias=False)
        self.residual = nn.Linear(dim, hidden, bias=False)
        self.norm, self.out = nn.BatchNorm1d(hidden), perceptron(hidden, hidden, classes)
        self.labels = perceptron(classes, hidden, classes)

    def forward(self, x: List[Tensor], labels: List[Tensor]) -> Tensor:
        h = torch.stack([net(F.dropout(v, 0.2, self.training)) for net, v in zip(self.each, x)], 1)
        score = F.leaky_relu(self.hop(h) + self.own(h[:, :1]), 0.2)
        share = F.dropout(score.softmax(1), 0.4, self.training)
        together = self.norm((share * h).sum(1) + self.residual(x[0])).relu()
        # Far hops only: one that returns to the node would tell its own label.
        return self.out(F.dropout(together, 0.5, self.training)) + self.labels(labels[-1])


class GAMLP(nn.Module):
    """Zhang et al., Graph Attention Multi-Layer Perceptron, 2022, with recursive attention: a hop is weighed by what
    the nearer ones have brought together."""

    def __init__(self, dim: int, classes: int, hidden: int, hops: int) -> None:
        super().__init__()
        self.each = nn.ModuleList(perceptron(dim, hidden, hidden) for _ in range(hops + 1))
        self.weigh = nn.Linear(2 * hidden, 1)
        self.residual = nn.Linear(dim, hidden, bias=False)
        self.out, self.labels = perceptron(hidden, hidden, classes), perceptron(classes, hidden, classes)

    def forward(self, x: List[Tensor], labels: List[Tensor]) -> Tensor:
        h = [net(F.dropout(v, 0.2, self.training)) for net, v in zip(self.each, x)]
        scores: List[Tensor] = []
        brought = h[0]
        for hop in h:
            scores.append(F.leaky_relu(self.weigh(torch.cat([brought, hop], 1)), 0.2))
            share = F.dropout(torch.cat(scores, 1).softmax(1), 0.2, self.training)
            brought = (share.unsqueeze(2) * torch.stack(h[:len(scores)], 1)).sum(1)
        return self.out((brought + self.residual(x[0])).relu()) + self.labels(last_residual(labels))


def last_residual(labels: List[Tensor]) -> Tensor:
    """Each hop of labels leans on the last one, the nearer ones less: the own label, hop 0, stays out."""
    far = len(labels) - 1
    share = [math.cos(math.pi * k / (2 * far)) for k in range(1, far + 1)]
    return torch.stack([torch.lerp(labels[-1], v, a) for a, v in zip(share, labels[1:])]).mean(0)
