"""The methods of the paper's tables, each a list of stages: what the last one ends with is the method's answer.

    distilled  RevGAT + SelfKD: a teacher, and then a student of the same shape that learns the teacher's answers
    enhanced   SAGN + SLE: after each stage, nodes that it is sure of join the training nodes
    reliable   GAMLP + RLU: after each stage, its answers on nodes that it is sure of are learned softly
"""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hops import GAMLP, SAGN, hops, one_hot
from networks import MLP, SAGE, SAINT, SGC, RevGAT
from problem import Problem, Stage, fit
from samplers import Batch, neighbourhoods, subgraphs, whole

Method = Callable[[Problem, int, int], List[Stage]]  # problem, steps of a stage, hidden


def plain(network: Callable[[int, int, int], nn.Module], batches: Callable[[Problem], Iterator[Batch]]) -> Method:
    """A network that is trained once."""

    def method(p: Problem, steps: int, hidden: int) -> List[Stage]:
        model = network(p.x.shape[1], p.classes, hidden)
        draw = batches(p)

        def loss() -> Tensor:
            x, edges, weight, at, y, of_loss = next(draw)
            each = F.cross_entropy(model(x, edges, weight)[at], y, reduction="none")
            return (each if of_loss is None else each * of_loss).mean()

        return [Stage(fit(p, model.parameters(), steps, loss, lambda: model(p.x, p.edges, p.mean), [model]), 0)]

    return method


def distilled(p: Problem, steps: int, hidden: int, alpha: float = 0.95, temperature: float = 0.7) -> List[Stage]:
    """The labels of half of the training nodes, drawn anew in each step, are input; the loss is on the others."""

    def stage(teacher: Tensor, share: float) -> Tensor:
        model = RevGAT(p.x.shape[1] + p.classes, p.classes, hidden)
        target = teacher.div(temperature).softmax(1)

        def answers(shown: Tensor) -> Tensor:
            y = torch.zeros(p.nodes, p.classes)
            y[shown, p.y[shown]] = 1
            return model(torch.cat([p.x, y], 1), p.edges)

        def loss() -> Tensor:
            drawn = p.train[torch.randperm(len(p.train))]
            shown, asked = drawn[:len(drawn) // 2], drawn[len(drawn) // 2:]
            out = answers(shown)
            labels = F.cross_entropy(out[asked], p.y[asked])
            if share == 0:
                return labels
            like = F.kl_div(out.div(temperature).log_softmax(1), target, reduction="batchmean")
            return torch.lerp(labels, like.mul(temperature**2), share)

        return fit(p, model.parameters(), steps, loss, lambda: answers(p.train), [model])

    teacher = stage(torch.zeros(p.nodes, p.classes), 0)
    return [Stage(teacher, 0), Stage(stage(teacher, alpha), p.nodes - len(p.train))]


def sure(p: Problem, chances: Tensor, threshold: float) -> Tensor:
    """The nodes outside the training nodes whose likeliest class is likelier than the threshold."""
    at = chances.max(1).values > threshold
    at[p.train] = False
    return torch.nonzero(at).flatten()


def enhanced(p: Problem, steps: int, hidden: int, stages: int = 3, threshold: float = 0.95, reach: int = 5,
             label_reach: int = 9) -> List[Stage]:
    x = hops(p, p.x, reach)
    out: List[Stage] = []
    more, chances = torch.empty(0, dtype=torch.long), torch.zeros(p.nodes, p.classes)
    for _ in range(stages):
        labels = hops(p, one_hot(p, more, chances), label_reach)
        nodes = torch.cat([p.train, more])
        y = torch.cat([p.y[p.train], chances[more].argmax(1)])
        model = SAGN(p.x.shape[1], p.classes, hidden, reach)
        logits = fit(p, model.parameters(), steps, lambda: F.cross_entropy(model(x, labels)[nodes], y),
                     lambda: model(x, labels), [model], decay=0)
        out.append(Stage(logits, len(more)))
        chances = logits.softmax(1)
        more = sure(p, chances, threshold)
    return out


def reliable(p: Problem, steps: int, hidden: int, stages: int = 4, threshold: float = 0.85, reach: int = 5,
             label_reach: int = 9, gamma: float = 0.1) -> List[Stage]:
    x = hops(p, p.x, reach)
    out: List[Stage] = []
    more, chances = torch.empty(0, dtype=torch.long), torch.zeros(p.nodes, p.classes)
    for _ in range(stages):
        labels = hops(p, one_hot(p, more, chances), label_reach)
        weight = chances[more].max(1).values if len(more) else torch.empty(0)
        model = GAMLP(p.x.shape[1], p.classes, hidden, reach)

        def loss() -> Tensor:
            log = model(x, labels).log_softmax(1)
            own = F.nll_loss(log[p.train], p.y[p.train])
            if len(more) == 0:
                return own
            soft = -(chances[more] * log[more]).sum(1)
            return own + gamma * (weight * soft).mean()

        logits = fit(p, model.parameters(), steps, loss, lambda: model(x, labels), [model], decay=0)
        out.append(Stage(logits, len(more)))
        chances = logits.softmax(1)
        more = sure(p, chances, threshold)
    return out


METHODS: Dict[str, Method] = {
    "mlp": plain(MLP, whole),
    "sage": plain(SAGE, neighbourhoods),
    "saint": plain(SAINT, subgraphs),
    "sgc": plain(SGC, whole),
    "revgat": plain(RevGAT, whole),
    "revgat+kd": distilled,
    "sagn+sle": enhanced,
    "gamlp+rlu": reliable,
}
