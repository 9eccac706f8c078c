from __future__ import annotations

import pathlib
import random
import tempfile
import unittest
import unittest.mock
from typing import Any

from torch.utils.data import DataLoader

from giantstream_torch import (
    Batch,
    DatasetError,
    Generation,
    Order,
    StateMismatch,
    StreamingDataset,
    StreamingLoader,
)
from giantstream_torch.order import Random

from . import made, reference


def numbers(batch: Batch) -> list[int]:
    return [int(node_id[1:]) for node_id in batch.texts("node_id")]


class Case:
    """A random generation, and an order that several numbers of ranks divide."""

    def __init__(self, seed: int, folder: str) -> None:
        self.r = random.Random(seed)
        self.groups = made.groups(self.r)
        self.generation = Generation(made.generation(pathlib.Path(folder) / str(seed), self.r, self.groups))
        streams = self.r.choice([1, 1, 2, 3, 4])
        self.order = Order(
            batch_size=streams * self.r.choice([1, 2, 4, 12]),
            seed=self.r.choice([0, 1, 2**64 - 1, self.r.getrandbits(64)]),
            window=self.r.choice([1, 2, 3, 16]),
            streams=streams,
            drop_last=self.r.random() < 0.3,
        )
        self.ranks = [n for n in (1, 2, 3, 4, 6, 8) if self.order.batch_size % n == 0]

    def dataset(self, rank: int, ranks: int) -> StreamingDataset[Batch]:
        return StreamingDataset(
            self.generation, self.order, rank=rank, ranks=ranks, columns=["node_id"], prefetch=self.r.randrange(3), readers=2
        )

    def global_batches(self, ranks: int, state: dict[str, Any] | None = None, stop: int | None = None) -> Any:
        """What all ranks together get from a state on, at most stop batches, and the states afterwards."""
        each, states = [], []
        for rank in range(ranks):
            dataset = self.dataset(rank, ranks)
            if state:
                dataset.load_state_dict(state)
            batches = []
            for batch in dataset:
                batches.append(numbers(batch))
                if len(batches) == stop:
                    break
            each.append(batches)
            states.append(dataset.state_dict())
        return [sum(pieces, []) for pieces in zip(*each, strict=True)], states


class OrderTest(unittest.TestCase):
    def test_perm(self) -> None:
        r = random.Random(1)
        for n in [*range(20), 1000]:
            seed, at = r.getrandbits(64), [r.getrandbits(63) for _ in range(r.randrange(3))]
            self.assertEqual(Random(seed, *at).perm(n).tolist(), reference.perm(n, seed, *at))

    def test_refused(self) -> None:
        for bad in ({"batch_size": 0}, {"window": 0}, {"streams": 0}, {"seed": -1}, {"seed": 1 << 64}, {"streams": 3}):
            with self.assertRaises(ValueError):
                Order(**({"batch_size": 4} | bad))  # type: ignore[arg-type]


class DatasetTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_order_for_any_number_of_ranks(self) -> None:
        for seed in range(40):
            case = Case(seed, self.folder)
            with self.subTest(seed=seed, order=case.order, groups=case.groups):
                ranks = case.r.choice(case.ranks)
                state = None
                for epoch in range(2):
                    want = reference.batches(case.order, case.groups, epoch)
                    self.assertEqual(len(case.dataset(0, ranks)), len(want))
                    got, states = case.global_batches(ranks, state)
                    self.assertEqual(got, want)
                    if not case.order.drop_last:
                        self.assertEqual(sorted(sum(got, [])), list(range(len(case.generation))))
                    state = states[0]
                    self.assertTrue(all(s == state for s in states))
                    self.assertEqual((state["epoch"], state["batch"]), (epoch + 1, 0))

    def test_ranks_change_within_an_epoch(self) -> None:
        for seed in range(100, 140):
            case = Case(seed, self.folder)
            with self.subTest(seed=seed, order=case.order, groups=case.groups):
                want = reference.batches(case.order, case.groups, 0)
                got: list[list[int]] = []
                state = None
                while len(got) < len(want):
                    ranks, stop = case.r.choice(case.ranks), case.r.randrange(1, len(want) - len(got) + 1)
                    more, states = case.global_batches(ranks, state, stop)
                    self.assertEqual(len(more), stop)
                    got += more
                    state = states[-1]
                    self.assertTrue(all(s == state for s in states))
                self.assertEqual(got, want)

    def test_one_two_one_ranks(self) -> None:
        folder = made.generation(pathlib.Path(self.folder) / "g", random.Random(5), [[40, 30, 10], [25, 25, 30]])
        order = Order(batch_size=8, seed=9, window=2)
        state: dict[str, Any] | None = None
        got: list[list[int]] = []
        for ranks, stop in ((1, 7), (2, 5), (1, 99)):
            pieces = []
            for rank in range(ranks):
                dataset = StreamingDataset(folder, order, rank=rank, ranks=ranks)
                if state:
                    dataset.load_state_dict(state)
                batches = iter(dataset)
                pieces.append([numbers(b) for _, b in zip(range(stop), batches)])
            state = dataset.state_dict()
            got += [sum(p, []) for p in zip(*pieces, strict=True)]
        whole = [numbers(b) for b in StreamingDataset(folder, order)]
        self.assertEqual(got, whole)
        self.assertEqual(sorted(sum(got, [])), list(range(160)))

    def test_the_next_batch_is_read_only_when_it_is_asked_for(self) -> None:
        folder = made.generation(pathlib.Path(self.folder) / "g", random.Random(5), [[10] * 30])
        dataset = StreamingDataset(folder, Order(5, window=2), prefetch=1, readers=1)
        read: list[int] = []
        inner = dataset.generation.read_group
        dataset.generation.read_group = lambda g, c: read.append(g) or inner(g, c)  # type: ignore
        batches = iter(dataset)
        next(batches)
        self.assertEqual(dataset.batch, 1)
        batches.close()  # type: ignore[attr-defined]
        self.assertLessEqual(len(read), 4, "one window in use and one ahead")
        self.assertGreater(len(read), 1)

    def test_streams_divide_what_ranks_read(self) -> None:
        folder = made.generation(pathlib.Path(self.folder) / "g", random.Random(5), [[10] * 16])
        of_ranks = []
        for rank in range(4):
            dataset = StreamingDataset(folder, Order(8, window=2, streams=4), rank=rank, ranks=4)
            read: list[int] = []
            inner = dataset.generation.read_group
            dataset.generation.read_group = lambda g, c: read.append(g) or inner(g, c)  # type: ignore
            self.assertEqual(len(list(dataset)), 20)
            of_ranks.append(read)
        self.assertEqual(sorted(sum(of_ranks, [])), list(range(16)))

    def test_transform_and_rank_of_the_environment(self) -> None:
        folder = made.generation(pathlib.Path(self.folder) / "g", random.Random(5), [[10] * 4])
        with unittest.mock.patch.dict("os.environ", {"RANK": "1", "WORLD_SIZE": "2"}):
            dataset = StreamingDataset(folder, Order(10), transform=lambda b: (b.epoch, b.number, b.size, len(b)))
        self.assertEqual((dataset.rank, dataset.ranks), (1, 2))
        self.assertEqual(list(dataset), [(0, i, 10, 5) for i in range(4)])
        for ranks in ((None, 2), (2, 2), (-1, 2), (0, None)):
            with self.assertRaises(ValueError):
                StreamingDataset(folder, Order(10), rank=ranks[0], ranks=ranks[1])
        with self.assertRaisesRegex(ValueError, "no multiple of the 3 ranks"):
            StreamingDataset(folder, Order(10), rank=0, ranks=3)
        with self.assertRaisesRegex(DatasetError, "no column colour"):
            StreamingDataset(folder, Order(10), columns=["node_id", "colour"])

    def test_states_that_do_not_fit(self) -> None:
        first = made.generation(pathlib.Path(self.folder) / "1", random.Random(5), [[10] * 4])
        other = made.generation(pathlib.Path(self.folder) / "2", random.Random(6), [[10] * 4])
        state = StreamingDataset(first, Order(10)).state_dict()
        StreamingDataset(first, Order(10)).load_state_dict(state)
        for what, dataset, changed in (
            ("generation", StreamingDataset(other, Order(10)), {}),
            ("batch_size was 10 and is 20", StreamingDataset(first, Order(20)), {}),
            ("seed was 0 and is 4", StreamingDataset(first, Order(10, seed=4)), {}),
            ("version 2", StreamingDataset(first, Order(10)), {"version": 2}),
            ("no batch 5", StreamingDataset(first, Order(10)), {"batch": 5}),
        ):
            with self.assertRaisesRegex(StateMismatch, what):
                dataset.load_state_dict(state | changed)


class LoaderTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = made.generation(pathlib.Path(folder.name), random.Random(3), [[9, 20, 3], [14, 30]])

    def test_workers_change_nothing(self) -> None:
        order = Order(6, seed=2, window=2, drop_last=False)
        want = [[numbers(b) for b in d] for d in [StreamingDataset(self.place, order)] for _ in range(2)]
        options = ({"num_workers": 0}, {"num_workers": 1}, {"num_workers": 3})
        spawned = {"num_workers": 2, "multiprocessing_context": "spawn"}
        for option in (*options, spawned):
            with self.subTest(option):
                loader = StreamingLoader(StreamingDataset(self.place, order), **option)
                self.assertEqual(len(loader), len(want[0]))
                got = []
                for epoch in range(2):
                    got.append([numbers(b) for b in loader])
                    self.assertEqual(loader.state_dict()["epoch"], epoch + 1)
                self.assertEqual(got, want)

    def test_state_does_not_know_the_number_of_workers(self) -> None:
        order = Order(6, seed=2, window=2)
        want = [numbers(b) for b in StreamingDataset(self.place, order)]
        got: list[list[int]] = []
        state: dict[str, Any] | None = None
        for workers in (2, 0, 3, 1, 0):
            loader = StreamingLoader(StreamingDataset(self.place, order), num_workers=workers)
            if state:
                loader.load_state_dict(state)
            for batch in loader:
                got.append(numbers(batch))
                if len(got) % 3 == 0:
                    break
            state = loader.state_dict()
        self.assertEqual(got, want)

    def test_refused(self) -> None:
        dataset = StreamingDataset(self.place, Order(6))
        with self.assertRaisesRegex(DatasetError, "use a StreamingLoader"):
            list(DataLoader(dataset, batch_size=None, num_workers=1))
        self.assertEqual(len(list(DataLoader(dataset, batch_size=None))), len(dataset))
        for option in ({"batch_size": 3}, {"shuffle": True}, {"persistent_workers": True}):
            with self.assertRaisesRegex(ValueError, f"takes no {list(option)[0]}"):
                StreamingLoader(dataset, **option)
