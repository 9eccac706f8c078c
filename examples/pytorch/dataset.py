"""Reads a training set of giantstream in the documented order (docs/format/dataset.md).

    python dataset.py GENERATION SEED EPOCH [WINDOW]

prints the ids of an epoch's rows.
"""

import json
import sys

import pyarrow.parquet as pq
from pyarrow import fs

MASK = (1 << 64) - 1
G = 0x9E3779B97F4A7C15


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


class Random:
    """SplitMix64 at a place: the numbers are a function of the seed and the coordinates."""

    def __init__(self, seed, *at):
        self.state = mix((seed + G) & MASK)
        for a in at:
            self.state = mix((self.state + G) & MASK) ^ mix((a + G) & MASK)

    def perm(self, n):
        p = list(range(n))
        for i in range(n - 1, 0, -1):
            self.state = (self.state + G) & MASK
            j = mix(self.state) * (i + 1) >> 64
            p[i], p[j] = p[j], p[i]
        return p


class Generation:
    """A generation's folder, in a directory or at s3://bucket/prefix/generations/000001."""

    def __init__(self, place, window=16):
        if "://" in place:
            self.fs, self.root = fs.FileSystem.from_uri(place)
        else:
            self.fs, self.root = fs.LocalFileSystem(), place.rstrip("/")
        with self.fs.open_input_stream(f"{self.root}/generation.json") as f:
            self.doc = json.load(f)
        if self.doc["status"] != "ready":
            raise SystemExit(f"generation {self.doc['generation']} is {self.doc['status']}, not ready")
        self.window = window
        # Parts in order of key; footers only.
        self.parts = [pq.ParquetFile(self.fs.open_input_file(p)) for p in self.paths("dataset")]
        self.groups = [(f, k, f.metadata.row_group(k).num_rows) for f in self.parts for k in range(f.num_row_groups)]
        self.groups = [g for g in self.groups if g[2]]

    def paths(self, folder):
        found = self.fs.get_file_info(fs.FileSelector(f"{self.root}/{folder}"))
        return sorted(i.path for i in found if i.base_name.startswith("part-"))

    def __len__(self):
        return sum(rows for _, _, rows in self.groups)

    @property
    def features(self):
        return self.doc["vectorizer"]["features"]

    @property
    def levels(self):
        """Clusters per level of the tree, coarse to fine."""
        return self.doc["tree"]["levels"]

    def epoch(self, seed, number, columns, position=0):
        """The rows of an epoch as dicts, from a position on; windows before it are not read."""
        order = Random(seed, number).perm(len(self.groups))
        for w in range(0, len(order), self.window):
            groups = [self.groups[i] for i in order[w : w + self.window]]
            rows = sum(n for _, _, n in groups)
            if position >= rows:
                position -= rows
                continue
            window = [r for f, k, _ in groups for r in f.read_row_group(k, columns=columns).to_pylist()]
            for i in Random(seed, number, w // self.window).perm(rows)[position:]:
                yield window[i]
            position = 0

    def stored(self, columns):
        """(part's number, row) in stored order."""
        for path, file in zip(self.paths("dataset"), self.parts):
            number = int(path.rsplit("part-", 1)[1].split(".")[0])
            for batch in file.iter_batches(columns=columns):
                for row in batch.to_pylist():
                    yield number, row


if __name__ == "__main__":
    place, seed, number, *window = sys.argv[1], *map(int, sys.argv[2:])
    for row in Generation(place, *window).epoch(seed, number, ["node_id"]):
        print(row["node_id"])
