"""Prints the node ids of a training set in the order of an epoch, as docs/format/dataset.md describes it.

order.py FOLDER SEED EPOCH WINDOW
"""

import glob
import sys

import pyarrow.parquet as pq

MASK = (1 << 64) - 1
G = 0x9E3779B97F4A7C15


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


class Random:
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


def epoch(folder, seed, number, window):
    files = [pq.ParquetFile(path) for path in sorted(glob.glob(folder + "/part-*.parquet"))]
    groups = [(f, k) for f in files for k in range(f.num_row_groups) if f.metadata.row_group(k).num_rows]
    order = Random(seed, number).perm(len(groups))
    for w in range(0, len(order), window):
        ids = []
        for i in order[w : w + window]:
            file, k = groups[i]
            ids += file.read_row_group(k, columns=["node_id"])["node_id"].to_pylist()
        for i in Random(seed, number, w // window).perm(len(ids)):
            yield ids[i]


if __name__ == "__main__":
    folder, seed, number, window = sys.argv[1], *map(int, sys.argv[2:])
    print("\n".join(epoch(folder, seed, number, window)))
