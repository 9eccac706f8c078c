from __future__ import annotations

import pathlib
import pickle
import random
import tempfile
import unittest

import pyarrow as pa

from giantstream_torch import Batch, Generation, Order, StreamingDataset, TRAINING_COLUMNS

from . import made


class BatchTest(unittest.TestCase):
    def check(self, batch: Batch) -> None:
        rows = batch.table.to_pylist()
        features = batch.features()
        self.assertEqual(features.indices.tolist(), [i for row in rows for i in row["feature_indices"]])
        self.assertEqual(features.values.tolist(), [v for row in rows for v in row["feature_values"]])
        ends = [0]
        for row in rows:
            ends.append(ends[-1] + len(row["feature_indices"]))
        self.assertEqual(features.offsets.tolist(), ends)
        levels = batch.targets()
        self.assertEqual(len(levels), max((len(row["targets"]) for row in rows), default=0))
        for at, level in enumerate(levels):
            want = [
                (i, cluster, count)
                for i, row in enumerate(rows)
                if at < len(row["targets"])
                for cluster, count in zip(row["targets"][at], row["target_counts"][at])
            ]
            got = zip(level.rows.tolist(), level.clusters.tolist(), level.counts.tolist())
            self.assertEqual(list(got), want)

    def test_tensors_of_batches(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            generation = Generation(made.generation(pathlib.Path(folder), random.Random(2), [[5, 60, 1], [33]]))
            for order in (Order(7, window=1, drop_last=False), Order(12, streams=3, drop_last=False)):
                for ranks in (1, order.batch_size):
                    for batch in StreamingDataset(generation, order, rank=0, ranks=ranks):
                        self.check(batch)
                        self.check(pickle.loads(pickle.dumps(batch)))

    def test_slices_and_rows_without_a_tree(self) -> None:
        r = random.Random(4)
        rows = [made.row(r, i) for i in range(20)]
        for at in (0, 7, 19):  # written before there was a generation
            rows[at] |= {name: [] for name in TRAINING_COLUMNS[1:]}
        schema = made.SCHEMA
        table = pa.Table.from_pylist(rows, schema)
        for start in range(20):
            for length in (0, 1, 5, 20):
                self.check(Batch(0, 0, length, table.slice(start, length)))
        self.check(Batch(0, 0, 6, pa.concat_tables([table.slice(3, 2), table.slice(6, 4)])))

    def test_a_pickle_has_no_more_than_the_rows(self) -> None:
        table = pa.table({"text": ["x" * 1000] * 1000})
        self.assertLess(len(pickle.dumps(Batch(0, 0, 1, table.slice(5, 1)))), 5000)
