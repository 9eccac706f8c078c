"""The networks that see the links at every step: MLP (sees none), GraphSAGE, GraphSAINT, SGC, a reversible GAT."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GroupAddRev, MessagePassing, SAGEConv, SGConv


class MLP(nn.Module):
    """Sees no links: what the others are compared with."""

    def __init__(self, dim: int, classes: int, hidden: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Dropout(0.5), nn.Linear(hidden, classes))

    def forward(self, x: Tensor, edges: Tensor, weight: Optional[Tensor] = None) -> Tensor:
        return self.layers(x)


class SAGE(nn.Module):
    def __init__(self, dim: int, classes: int, hidden: int) -> None:
        super().__init__()
        self.one, self.two = SAGEConv(dim, hidden), SAGEConv(hidden, classes)

    def forward(self, x: Tensor, edges: Tensor, weight: Optional[Tensor] = None) -> Tensor:
        return self.two(F.dropout(self.one(x, edges).relu(), 0.5, self.training), edges)


class Weighted(MessagePassing):
    """SAGE with a sum over weighted links instead of a mean, which GraphSAINT's normalisation needs."""

    def __init__(self, dim: int, out: int) -> None:
        super().__init__(aggr="add")
        self.near, self.own = nn.Linear(dim, out), nn.Linear(dim, out, bias=False)

    def forward(self, x: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
        return self.near(self.propagate(edges, x=x, weight=weight)) + self.own(x)

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        return weight.view(-1, 1) * x_j


class SAINT(nn.Module):
    def __init__(self, dim: int, classes: int, hidden: int) -> None:
        super().__init__()
        self.one, self.two = Weighted(dim, hidden), Weighted(hidden, classes)

    def forward(self, x: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
        return self.two(F.dropout(self.one(x, edges, weight).relu(), 0.5, self.training), edges, weight)


class SGC(nn.Module):
    def __init__(self, dim: int, classes: int, hidden: int) -> None:
        super().__init__()
        self.conv = SGConv(dim, classes, K=2)

    def forward(self, x: Tensor, edges: Tensor, weight: Optional[Tensor] = None) -> Tensor:
        return self.conv(x, edges)


class Step(nn.Module):
    """What a reversible block adds to a group of its channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.LayerNorm(width), GATConv(width, width)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.conv(self.norm(x).relu(), edges)


class RevGAT(nn.Module):
    """Li et al., Training Graph Neural Networks with 1000 Layers, 2021: blocks whose input is computed again from
    their output."""

    def __init__(self, dim: int, classes: int, hidden: int, depth: int = 4, groups: int = 2) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(dim, hidden), nn.Linear(hidden, classes)
        self.blocks = nn.ModuleList(GroupAddRev(Step(hidden // groups), num_groups=groups) for _ in range(depth))

    def forward(self, x: Tensor, edges: Tensor, weight: Optional[Tensor] = None) -> Tensor:
        x = F.dropout(self.first(x), 0.5, self.training)
        for block in self.blocks:
            x = block(x, edges)
        return self.last(x.relu())
