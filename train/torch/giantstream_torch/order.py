"""The order of a training set's rows, as a pure function of a few numbers (docs/format/dataset.md).

An Order says which rows make up batch k of an epoch, whoever reads them. Ranks and workers appear
only where a batch is divided among them, so their number may change from one batch to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & _MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


class Random:
    """SplitMix64 (Steele, Lea, Flood, 2014): the numbers are a function of the seed and the coordinates."""

    def __init__(self, seed: int, *at: int) -> None:
        self._state = _mix((seed + _GOLDEN) & _MASK)
        for a in at:
            self._state = _mix((self._state + _GOLDEN) & _MASK) ^ _mix((a + _GOLDEN) & _MASK)

    def perm(self, n: int) -> Ints:
        """A random order of 0…n-1, n < 2³² (Fisher–Yates)."""
        if n < 2:
            return np.arange(n, dtype=np.int64)
        p = list(range(n))
        for i, j in zip(range(n - 1, 0, -1), self._places(n)):
            p[i], p[j] = p[j], p[i]
        return np.array(p, dtype=np.int64)

    def _places(self, n: int) -> list[int]:
        """intn(n), intn(n-1), …, intn(2)."""
        state = np.uint64(self._state)
        x = state + np.uint64(_GOLDEN) * np.arange(1, n, dtype=np.uint64)
        self._state = (self._state + (n - 1) * _GOLDEN) & _MASK
        x ^= x >> np.uint64(30)
        x *= np.uint64(0xBF58476D1CE4E5B9)
        x ^= x >> np.uint64(27)
        x *= np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        # The high 64 bits of x · bound, in halves of 32 bits: no sum overflows, since bound < 2³².
        bound = np.arange(n, 1, -1, dtype=np.uint64)
        low = (x & np.uint64(0xFFFFFFFF)) * bound
        high = (x >> np.uint64(32)) * bound + (low >> np.uint64(32))
        places: list[int] = (high >> np.uint64(32)).tolist()
        return places


@dataclass(frozen=True)
class Order:
    """What decides the rows of every batch. A run that is resumed must keep all of it.

    batch_size: rows of a batch, those of all ranks together; a multiple of streams, and of the
        number of ranks.
    seed: 0…2⁶⁴-1.
    window: row groups that are shuffled with each other, per stream. A window is in memory whole.
    streams: a batch has equal slices of that many streams, each with row groups of its own. Where
        the number of ranks divides that of streams, no two ranks read the same rows from the store.
    drop_last: leave the rows at the end of an epoch that fill no batch out of it; otherwise they
        are one smaller batch.
    """

    batch_size: int
    seed: int = 0
    window: int = 16
    streams: int = 1
    drop_last: bool = True

    def __post_init__(self) -> None:
        for name in ("batch_size", "window", "streams"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 <= self.seed <= _MASK:
            raise ValueError(f"seed is {self.seed}; it must be between 0 and 2^64-1")
        if self.batch_size % self.streams:
            raise ValueError(f"batch_size {self.batch_size} is no multiple of streams {self.streams}; make it one")


@dataclass(frozen=True)
class Span:
    """Rows start to stop of a row group."""

    group: int
    start: int
    stop: int


@dataclass(frozen=True)
class Window:
    """Row groups of a stream that are shuffled with each other: its positions start to start + rows."""

    number: int  # counted through all streams
    start: int
    rows: int
    spans: tuple[Span, ...]


class Batches:
    """Which positions of which stream are in a batch; a function of the number of rows alone."""

    def __init__(self, order: Order, rows: int) -> None:
        # Stream c is rows bounds[c] to bounds[c+1] of the row groups in their shuffled order.
        self.bounds = [rows * c // order.streams for c in range(order.streams + 1)]
        lengths = [stop - start for start, stop in zip(self.bounds, self.bounds[1:])]
        self._size = order.batch_size
        self._slice = order.batch_size // order.streams
        self._full = min(lengths) // self._slice
        self._rest = [n - self._full * self._slice for n in lengths]
        self.count = self._full + (not order.drop_last and any(self._rest))

    def rows(self, batch: int) -> int:
        """How many rows a batch has, all ranks together."""
        return self._size if batch < self._full else sum(self._rest)

    def share(self, batch: int, stream: int, rank: int, ranks: int) -> tuple[int, int]:
        """The positions of a stream, from and to, that are in a batch and a rank's; to is at least from."""
        if batch < self._full:
            offset, length = stream * self._slice, self._slice
        else:
            offset, length = sum(self._rest[:stream]), self._rest[stream]
        rows = self.rows(batch)
        start = min(max(rows * rank // ranks - offset, 0), length)
        stop = min(max(rows * (rank + 1) // ranks - offset, 0), length)
        return batch * self._slice + start, batch * self._slice + stop


class Epoch:
    """One epoch over row groups of the given sizes (rows each, none of them empty)."""

    def __init__(self, order: Order, sizes: Ints, number: int) -> None:
        self.number = number
        self.batches = Batches(order, int(sizes.sum()))
        self._order = order
        self._groups = Random(order.seed, number).perm(len(sizes))
        self._ends = np.cumsum(sizes[self._groups])
        self._starts = self._ends - sizes[self._groups]

    def windows(self, stream: int, position: int) -> Iterator[Window]:
        """The windows of a stream, from the one that holds a position on."""
        number = sum(self._windows_of(c) for c in range(stream))
        first, last = self._groups_of(stream)
        start = 0
        for begin in range(first, last, self._order.window):
            end = min(begin + self._order.window, last)
            low = max(int(self._starts[begin]), self.batches.bounds[stream])
            high = min(int(self._ends[end - 1]), self.batches.bounds[stream + 1])
            if position < start + high - low:
                spans = tuple(self._span(i, low, high) for i in range(begin, end))
                yield Window(number, start, high - low, spans)
            start += high - low
            number += 1

    def perm(self, window: Window) -> Ints:
        """The order of a window's rows."""
        return Random(self._order.seed, self.number, window.number).perm(window.rows)

    def _span(self, i: int, low: int, high: int) -> Span:
        start = int(self._starts[i])
        return Span(int(self._groups[i]), max(low - start, 0), min(high, int(self._ends[i])) - start)

    def _groups_of(self, stream: int) -> tuple[int, int]:
        """The places, from and to, of the row groups that hold a stream's rows."""
        start, stop = self.batches.bounds[stream], self.batches.bounds[stream + 1]
        if start == stop:
            return 0, 0
        first = np.searchsorted(self._ends, start, side="right")
        return int(first), int(np.searchsorted(self._ends, stop, side="left")) + 1

    def _windows_of(self, stream: int) -> int:
        first, last = self._groups_of(stream)
        return -(-(last - first) // self._order.window)
