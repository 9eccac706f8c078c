"""What a method learns from, and the one loop that all methods train in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Callable, Iterable, Optional

import torch
from torch import Tensor, nn


@dataclass
class Problem:
    """Nodes with features, links and parts. Labels of test nodes are not in it, so no method can learn from them."""

    x: Tensor
    edges: Tensor
    y: Tensor  # -1 where nothing is known
    classes: int
    train: Tensor
    validation: Tensor

    @classmethod
    def of(cls, x: Tensor, edges: Tensor, y: Tensor, classes: int, train: Tensor, validation: Tensor) -> Problem:
        known = torch.full_like(y, -1)
        for part in (train, validation):
            known[part] = y[part]
        return cls(x, edges, known, classes, train, validation)

    @property
    def nodes(self) -> int:
        return len(self.x)

    @cached_property
    def mean(self) -> Tensor:
        """Weights of the links with which a sum over neighbours is their mean."""
        degree = torch.bincount(self.edges[1], minlength=self.nodes).clamp(min=1)
        return 1 / degree[self.edges[1]].float()


@dataclass
class Stage:
    """What one stage of a method ends with."""

    logits: Tensor  # nodes × classes
    learned_from: int  # nodes without a label whose predicted classes were used


def fit(p: Problem, parameters: Iterable[nn.Parameter], steps: int, loss: Callable[[], Tensor],
        logits: Callable[[], Tensor], modules: Iterable[nn.Module], rate: float = 0.01,
        decay: float = 5e-4) -> Tensor:
    """Trains, and returns the logits of the step that is best on the validation nodes, the latest of equally good ones:
    where the first steps get all of them right, the later ones are surer.
    """
    optimizer = torch.optim.Adam(parameters, lr=rate, weight_decay=decay)
    modules = list(modules)
    best: Optional[Tensor] = None
    most = -1
    for step in range(steps):
        for m in modules:
            m.train()
        optimizer.zero_grad()
        loss().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % 10 == 9 or step == steps - 1:
            for m in modules:
                m.eval()
            with torch.no_grad():
                now = logits()
            right = int((now[p.validation].argmax(1) == p.y[p.validation]).sum())
            if right >= most:
                most, best = right, now
    assert best is not None
    return best
