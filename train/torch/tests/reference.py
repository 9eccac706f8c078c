"""docs/format/dataset.md, word by word: whole lists, and integers of any size."""

from __future__ import annotations

from giantstream_torch import Order

M = 1 << 64
G = 0x9E3779B97F4A7C15


def mix(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 % M
    x ^= x >> 27
    x = x * 0x94D049BB133111EB % M
    return x ^ x >> 31


def perm(n: int, seed: int, *at: int) -> list[int]:
    state = mix((seed + G) % M)
    for a in at:
        state = mix((state + G) % M) ^ mix((a + G) % M)
    p = list(range(n))
    for i in range(n - 1, 0, -1):
        state = (state + G) % M
        j = mix(state) * (i + 1) // M
        p[i], p[j] = p[j], p[i]
    return p


def batches(order: Order, groups: list[list[int]], epoch: int) -> list[list[int]]:
    """The rows of every batch, numbered through in stored order."""
    numbered, n = [], 0
    for size in (size for part in groups for size in part):
        if size:
            numbered.append(list(range(n, n + size)))
            n += size
    shuffled = [numbered[i] for i in perm(len(numbered), order.seed, epoch)]
    streams = []
    window = 0
    for c in range(order.streams):
        first, last = n * c // order.streams, n * (c + 1) // order.streams
        pieces, at = [], 0
        for group in shuffled:
            piece = [row for i, row in enumerate(group, at) if first <= i < last]
            at += len(group)
            if piece:
                pieces.append(piece)
        stream: list[int] = []
        for begin in range(0, len(pieces), order.window):
            rows = [row for piece in pieces[begin : begin + order.window] for row in piece]
            stream += [rows[i] for i in perm(len(rows), order.seed, epoch, window)]
            window += 1
        streams.append(stream)
    each = order.batch_size // order.streams
    out = []
    while min(len(s) for s in streams) >= each:
        out.append([row for s in streams for row in s[:each]])
        streams = [s[each:] for s in streams]
    if not order.drop_last and any(streams):
        out.append([row for s in streams for row in s])
    return out
