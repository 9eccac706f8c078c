"""Gradients in slices, which make the weights the same for any number of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch import Tensor

from .batch import Batch


class SlicedGradients:
    """Gradients of a batch's slices, added along a binary tree over the slices.

    DistributedDataParallel adds up the ranks' gradients, so that other numbers of ranks round
    otherwise. Here the gradient of each slice is taken by itself, and all are added in one order:
    1, 2, 4, … ranks end with the same bits, if a slice gives the same bits on each (the same kind of
    machine, and torch.set_num_threads the same).

    parameters: those of the model, the same on every rank.
    slices: of a batch, those of all ranks together; a power of two, which the weights depend on.
    rank, ranks: as StreamingDataset has them; ranks divides slices.

    A step exchanges the gradients of all ranks (all_gather), and holds one for each rank and for each
    level of the tree below it.
    """

    def __init__(
        self, parameters: Iterable[Tensor], slices: int = 8, rank: int | None = None, ranks: int | None = None
    ) -> None:
        self._parameters = [p for p in parameters if p.requires_grad]
        self.ranks = ranks if ranks is not None else dist.get_world_size() if dist.is_initialized() else 1
        self.rank = rank if rank is not None else dist.get_rank() if dist.is_initialized() else 0
        if slices < 1 or slices & (slices - 1):
            raise ValueError(f"{slices} slices: use a power of two")
        if slices % self.ranks:
            raise ValueError(f"{self.ranks} ranks do not divide {slices} slices: use a power of two up to {slices}")
        self.slices = slices

    @property
    def own(self) -> range:
        """The numbers of this rank's slices."""
        each = self.slices // self.ranks
        return range(self.rank * each, (self.rank + 1) * each)

    def split(self, batch: Batch) -> list[Batch]:
        """This rank's share of a batch as its slices. All batches must be of a size that slices divides."""
        if batch.size % self.slices or len(batch) * self.ranks != batch.size:
            raise ValueError(
                f"a batch of {batch.size} rows, of which {len(batch)} are here, has no {self.slices} equal slices: "
                "make batch_size a multiple of slices, and drop_last true"
            )
        rows = batch.size // self.slices
        return [
            Batch(batch.epoch, batch.number, batch.size, batch.table.slice(at, rows)) for at in range(0, len(batch), rows)
        ]

    def backward(self, loss: Callable[[int], Tensor]) -> Tensor:
        """Sets the gradients of the parameters to those of the sum of all slices' losses, and returns that sum.

        loss returns the loss of a slice, by its number; it is called for this rank's own. Seed by this
        number what loss draws at random.
        """
        tree = _Tree()
        for number in self.own:
            for p in self._parameters:
                p.grad = None
            value = loss(number)
            value.backward()
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._parameters]
            tree.add((torch.cat([g.reshape(-1) for g in gradients]), value.detach().double().reshape(1)))
        gradient, total = self._exchange(*tree.sum())
        at = 0
        for p in self._parameters:
            p.grad = gradient[at : at + p.numel()].reshape(p.shape).to(p.dtype)
            at += p.numel()
        result: Tensor = total.reshape(())
        return result

    def _exchange(self, gradient: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        if self.ranks == 1:
            return gradient, total
        gradients = [torch.empty_like(gradient) for _ in range(self.ranks)]
        totals = [torch.empty_like(total) for _ in range(self.ranks)]
        dist.all_gather(gradients, gradient)
        dist.all_gather(totals, total)
        tree = _Tree()
        for pair in zip(gradients, totals):
            tree.add(pair)
        return tree.sum()


class _Tree:
    """Sums of a power of two of pairs that come in order; it holds one for each level."""

    def __init__(self) -> None:
        self._nodes: list[tuple[int, tuple[Tensor, Tensor]]] = []

    def add(self, pair: tuple[Tensor, Tensor]) -> None:
        size = 1
        while self._nodes and self._nodes[-1][0] == size:
            _, before = self._nodes.pop()
            pair = (before[0] + pair[0], before[1] + pair[1])
            size *= 2
        self._nodes.append((size, pair))

    def sum(self) -> tuple[Tensor, Tensor]:
        ((_, pair),) = self._nodes
        return pair
