"""The dataset and its loader: shuffled, deterministic, resumable within an epoch, elastic."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeVar, cast, overload

import pyarrow as pa
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from .batch import Batch
from .errors import DatasetError, StateMismatch
from .generation import Generation
from .order import Batches, Epoch, Order
from .windows import Pool, Stream

T = TypeVar("T")

TRAINING_COLUMNS = ("node_id", "feature_indices", "feature_values", "targets", "target_counts")


class StreamingDataset(IterableDataset[T]):
    """Batches of a generation's training set: a rank's share of each.

    An iteration yields the rest of the current epoch, and the next iteration the next epoch. Every
    rank gets the same number of batches. state_dict says which batch comes next; it does not depend
    on the number of ranks and workers. Iterate the dataset as it is, or through a StreamingLoader
    for workers or pinned memory.

    generation: where it is, or an opened one.
    order: what decides the rows of every batch.
    columns: those that are read (docs/format/rows.md).
    transform: makes of a Batch what is yielded; with workers it runs in them.
    rank, ranks: default to those of torch.distributed where that is initialized, else to RANK and
        WORLD_SIZE, which torchrun sets, else to a single rank.
    prefetch: windows that are read ahead, per stream.
    readers: row groups that are read at once.
    """

    @overload
    def __init__(
        self: StreamingDataset[Batch],
        generation: str | os.PathLike[str] | Generation,
        order: Order,
        *,
        columns: Sequence[str] = ...,
        transform: None = None,
        rank: int | None = ...,
        ranks: int | None = ...,
        prefetch: int = ...,
        readers: int = ...,
    ) -> None: ...

    @overload
    def __init__(
        self,
        generation: str | os.PathLike[str] | Generation,
        order: Order,
        *,
        columns: Sequence[str] = ...,
        transform: Callable[[Batch], T],
        rank: int | None = ...,
        ranks: int | None = ...,
        prefetch: int = ...,
        readers: int = ...,
    ) -> None: ...

    def __init__(
        self,
        generation: str | os.PathLike[str] | Generation,
        order: Order,
        *,
        columns: Sequence[str] = TRAINING_COLUMNS,
        transform: Callable[[Batch], Any] | None = None,
        rank: int | None = None,
        ranks: int | None = None,
        prefetch: int = 1,
        readers: int = 8,
    ) -> None:
        self.generation = generation if isinstance(generation, Generation) else Generation(generation)
        self.generation.check_columns(columns)
        self.order = order
        self.rank, self.ranks = _rank_of(rank, ranks)
        if order.batch_size % self.ranks:
            raise ValueError(f"batch_size {order.batch_size} is no multiple of the {self.ranks} ranks; make it one")
        if prefetch < 0 or readers < 1:
            raise ValueError(f"prefetch is {prefetch}, readers {readers}; they must be at least 0 and 1")
        self._columns = list(columns)
        self._transform = transform
        self._prefetch = prefetch
        self._readers = readers
        self._epoch = 0
        self._batch = 0
        self._loader_counts = False  # whether a StreamingLoader counts what workers yield

    def __len__(self) -> int:
        """Batches of a whole epoch, the same on every rank."""
        return Batches(self.order, len(self.generation)).count

    @property
    def epoch(self) -> int:
        """The epoch of the next iteration, from 0."""
        return self._epoch

    @property
    def batch(self) -> int:
        """The number, within the epoch, of the next batch to be yielded."""
        return self._batch

    def seek(self, epoch: int, batch: int = 0) -> None:
        """Sets what the next iteration begins with."""
        if epoch < 0 or not 0 <= batch <= len(self):
            raise StateMismatch(f"there is no batch {batch} in epoch {epoch}; an epoch has {len(self)}")
        self._epoch, self._batch = epoch, batch

    def state_dict(self) -> dict[str, Any]:
        """What load_state_dict needs to go on behind the last batch that was yielded."""
        return {
            "version": 1,
            "generation": self.generation.fingerprint(),
            "order": asdict(self.order),
            "epoch": self._epoch,
            "batch": self._batch,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where another dataset was, with any number of ranks and workers, from any copy."""
        if state.get("version") != 1:
            raise StateMismatch(f"the state has version {state.get('version')}; this package reads 1")
        mine = self.state_dict()
        if state["generation"] != mine["generation"]:
            raise StateMismatch(
                f"the state is of generation {state['generation']}, this one is {mine['generation']}: "
                "go on with the same generation, or begin without the state"
            )
        was, now = state["order"], mine["order"]
        if changed := [f"{name} was {was.get(name)} and is {now[name]}" for name in now if was.get(name) != now[name]]:
            raise StateMismatch(f"{', '.join(changed)}: go on with what it was, or begin without the state")
        self.seek(state["epoch"], state["batch"])

    def count(self) -> None:
        """Notes that a batch was handed out; for whoever iterates copies of the dataset in workers."""
        self._batch += 1

    def end_epoch(self) -> None:
        """Moves on to the next epoch."""
        self._epoch, self._batch = self._epoch + 1, 0

    def __iter__(self) -> Iterator[T]:
        worker = get_worker_info()
        if worker is not None:
            if not self._loader_counts:
                raise DatasetError("a DataLoader does not count the batches of workers: use a StreamingLoader")
            # A loader takes a batch from each worker in turn.
            yield from self._rest(self._epoch, self._batch + worker.id, worker.num_workers)
            return
        for made in self._rest(self._epoch, self._batch, 1):
            self.count()
            yield made
        self.end_epoch()

    def _rest(self, number: int, first: int, step: int) -> Iterator[T]:
        """Batches first, first + step, … of an epoch."""
        epoch = Epoch(self.order, self.generation.sizes, number)
        numbers = range(first, epoch.batches.count, step)

        def share(batch: int, stream: int) -> tuple[int, int]:
            return epoch.batches.share(batch, stream, self.rank, self.ranks)

        def shares(stream: int) -> Iterator[tuple[int, int]]:
            return (share(batch, stream) for batch in numbers)

        with Pool(lambda group: self.generation.read_group(group, self._columns), self._readers) as pool:
            streams = [Stream(epoch, c, shares(c), pool, self._prefetch) for c in range(self.order.streams)]
            for batch in numbers:
                pieces = [self.generation.no_rows(self._columns)]
                for c, stream in enumerate(streams):
                    start, stop = share(batch, c)
                    pieces += stream.read(stop - start)
                made = Batch(number, batch, epoch.batches.rows(batch), pa.concat_tables(pieces))
                yield cast(T, made if self._transform is None else self._transform(made))


class StreamingLoader(DataLoader[T]):
    """A DataLoader for a StreamingDataset: workers, pinned memory, and a state that counts with workers.

    options are those of DataLoader but for batch_size and what shuffles, which the dataset's order
    decides, and persistent_workers, which would iterate a copy that knows no new state. Every
    worker reads the windows for itself, so workers are for a transform that is slow, not for
    reading. On a remote store workers are spawned unless multiprocessing_context says otherwise: a
    client of S3 does not survive a fork.
    """

    dataset: StreamingDataset[T]

    def __init__(self, dataset: StreamingDataset[T], *, num_workers: int = 0, **options: Any) -> None:
        for name in ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last", "persistent_workers"):
            if options.get(name):
                raise ValueError(f"a StreamingLoader takes no {name}: the dataset's order decides, see README.md")
        if num_workers > 0 and not dataset.generation.is_local:
            options.setdefault("multiprocessing_context", "spawn")
        super().__init__(dataset, batch_size=None, num_workers=num_workers, **options)

    def __iter__(self) -> Iterator[T]:  # type: ignore[override]
        if self.num_workers == 0:
            yield from super().__iter__()
            return
        self.dataset._loader_counts = True
        try:
            batches = super().__iter__()  # the workers get their copies of the dataset here
        finally:
            self.dataset._loader_counts = False
        for made in batches:
            self.dataset.count()
            yield made
        self.dataset.end_epoch()

    def state_dict(self) -> dict[str, Any]:
        return self.dataset.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.dataset.load_state_dict(state)


def _rank_of(rank: int | None, ranks: int | None) -> tuple[int, int]:
    if rank is None and ranks is None:
        if dist.is_available() and dist.is_initialized():
            rank, ranks = dist.get_rank(), dist.get_world_size()
        else:
            rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if rank is None or ranks is None or not 0 <= rank < ranks:
        raise ValueError(f"rank {rank} of {ranks} ranks: give both or neither, with 0 <= rank < ranks")
    return rank, ranks
