"""Reads a stream's windows ahead, in the background, and deals out their rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from .errors import DatasetError
from .order import Epoch, Ints, Window

Read = Callable[[int], pa.Table]  # a row group by its number


class Pool:
    """The threads of an iteration: many read row groups, one puts windows in their order.

    They share the interpreter with the trainer, and need little of it: reading, decoding and
    gathering release its lock.
    """

    def __init__(self, read: Read, readers: int) -> None:
        self._read = read
        self._readers = ThreadPoolExecutor(readers)
        self._shuffler = ThreadPoolExecutor(1)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._shuffler.shutdown(wait=True, cancel_futures=True)

    def load(self, epoch: Epoch, window: Window, intervals: Sequence[tuple[int, int]]) -> Future[pa.Table]:
        """The rows at the intervals of the window's positions, in order."""
        groups = [self._readers.submit(self._read, span.group) for span in window.spans]
        return self._shuffler.submit(_gather, epoch, window, groups, intervals)


def _gather(
    epoch: Epoch, window: Window, groups: Sequence[Future[pa.Table]], intervals: Sequence[tuple[int, int]]
) -> pa.Table:
    order = epoch.perm(window)
    rows: Ints = np.concatenate([order[start - window.start : stop - window.start] for start, stop in intervals])
    tables = [
        group.result().slice(span.start, span.stop - span.start) for group, span in zip(groups, window.spans)
    ]
    try:
        return pa.concat_tables(tables).combine_chunks().take(pa.array(rows))
    except pa.ArrowException as e:
        # A column of an Arrow table holds 2 GiB of strings or 2^31 list elements.
        raise DatasetError(f"a window of {window.rows} rows cannot be gathered: {e}; choose a smaller window") from e


class Stream:
    """The rows of a rank's shares of a stream, in the order of the batches.

    At most 1 + prefetch windows are in memory or being read. Windows without rows of these shares
    are not read.
    """

    def __init__(self, epoch: Epoch, stream: int, shares: Iterator[tuple[int, int]], pool: Pool, prefetch: int) -> None:
        self._epoch = epoch
        self._pool = pool
        self._ahead = prefetch
        self._shares = (share for share in shares if share[0] < share[1])
        self._share = next(self._shares, None)  # the rest of the first share that is not scheduled
        self._windows = epoch.windows(stream, self._share[0]) if self._share else iter(())
        self._loading: deque[Future[pa.Table]] = deque()
        self._table: Any = None
        self._used = 0  # rows of _table that were read
        self._schedule()

    def read(self, rows: int) -> list[pa.Table]:
        """The next rows."""
        pieces = []
        while rows > 0:
            if self._table is None or self._used == self._table.num_rows:
                self._table = None  # free before the next one is asked for
                self._schedule()
                self._table, self._used = self._loading.popleft().result(), 0
            piece = self._table.slice(self._used, rows)
            self._used += piece.num_rows
            rows -= piece.num_rows
            pieces.append(piece)
        return pieces

    def _schedule(self) -> None:
        """Asks for windows until as many are there as may be; called while none is dealt out."""
        while len(self._loading) < 1 + self._ahead:
            window = next(self._windows, None)
            if window is None:
                return
            if intervals := self._intervals(window):
                self._loading.append(self._pool.load(self._epoch, window, intervals))

    def _intervals(self, window: Window) -> list[tuple[int, int]]:
        """What the shares want of a window."""
        end = window.start + window.rows
        intervals = []
        while self._share and self._share[0] < end:
            start, stop = self._share
            intervals.append((start, min(stop, end)))
            if stop > end:
                self._share = (end, stop)
                break
            self._share = next(self._shares, None)
        return intervals
