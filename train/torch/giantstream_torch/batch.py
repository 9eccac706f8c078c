"""A batch, or a rank's share of one, and its columns as tensors (docs/format/rows.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from .errors import DatasetError


@dataclass(frozen=True)
class Features:
    """Ψ(text) of n rows, as torch.nn.EmbeddingBag takes it with include_last_offset=True.

    Row i has the columns indices[offsets[i]:offsets[i+1]], with the weights at the same places.
    """

    indices: Tensor  # int64
    values: Tensor  # float32, per_sample_weights
    offsets: Tensor  # int64 [n + 1]


@dataclass(frozen=True)
class Level:
    """The targets of n rows at one level of the label tree, as coordinates.

    counts[k] of the neighbours of row rows[k] are in cluster clusters[k].
    """

    rows: Tensor  # int64, ascending
    clusters: Tensor  # int64
    counts: Tensor  # float32


@dataclass(frozen=True)
class Batch:
    """Rows of batch number of an epoch: all of them with one rank, else this rank's share."""

    epoch: int
    number: int
    size: int  # rows of the whole batch, all ranks together
    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __reduce__(self) -> Any:
        # Arrow would pickle all of the buffers that a slice is of.
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as stream:
            stream.write_table(self.table)
        return _unpickled, (self.epoch, self.number, self.size, sink.getvalue().to_pybytes())

    def texts(self, column: str = "text") -> list[str]:
        """A column of strings, "" for null."""
        return [text or "" for text in self.table[column].to_pylist()]

    def features(self) -> Features:
        values, offsets = _list(self.table["feature_values"])
        indices, _ = _list(self.table["feature_indices"])
        return Features(_tensor(indices, np.int64), _tensor(values, np.float32), _tensor(offsets, np.int64))

    def targets(self) -> list[Level]:
        """A Level per level of the tree, coarse to fine; none if no row has targets."""
        clusters, ends = _list(self.table["targets"])
        counts, _ = _list(self.table["target_counts"])
        depth = int(np.diff(ends).max(initial=0))
        clusters, starts = _list(clusters)
        counts, _ = _list(counts)
        # List number k is level k - ends[row] of its row; rows written before there was a tree have none.
        row_of_list = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        level_of_list = np.arange(len(row_of_list)) - ends[row_of_list]
        level = np.repeat(level_of_list, np.diff(starts))
        row = np.repeat(row_of_list, np.diff(starts))
        clusters, counts = _numpy(clusters), _numpy(counts)
        return [
            Level(*(_tensor(x[level == at], dtype) for x, dtype in ((row, np.int64), (clusters, np.int64), (counts, np.float32))))
            for at in range(depth)
        ]


def _list(column: Any) -> tuple[Any, Any]:
    """The elements of a column of lists, one after the other, and where those of each row begin and end."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:
        raise DatasetError("a list is null, which giantstream writes nowhere; read the training set as it was written")
    offsets = _numpy(column.offsets) if len(column) else np.zeros(1, dtype=np.int64)
    # flatten() leaves out what a slice leaves out; offsets count from the array's own start.
    return column.flatten(), offsets - offsets[0]


def _numpy(array: Any) -> Any:
    return array.to_numpy(zero_copy_only=False)


def _tensor(array: Any, dtype: Any) -> Tensor:
    """A tensor with memory of its own: Arrow's is read-only."""
    return torch.from_numpy(np.array(array, dtype=dtype))


def _unpickled(epoch: int, number: int, size: int, table: bytes) -> Batch:
    with pa.ipc.open_stream(table) as stream:
        return Batch(epoch, number, size, stream.read_all())
