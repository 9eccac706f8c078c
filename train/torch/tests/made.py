"""Generations for the tests: small, random, and written as docs/format says."""

from __future__ import annotations

import hashlib
import json
import pathlib
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from giantstream_torch.crc32c import crc32c

LEVELS = [3, 7]

SCHEMA = pa.schema(
    [
        ("node_id", pa.string()),
        ("text", pa.string()),
        ("feature_indices", pa.list_(pa.int32())),
        ("feature_values", pa.list_(pa.float32())),
        ("targets", pa.list_(pa.list_(pa.int32()))),
        ("target_counts", pa.list_(pa.list_(pa.int32()))),
    ]
)


def row(r: random.Random, number: int) -> dict[str, Any]:
    indices = sorted(r.sample(range(50), r.randrange(6)))
    targets = [sorted(r.sample(range(n), r.randrange(n))) for n in LEVELS]
    return {
        "node_id": f"n{number:06d}",
        "text": f"text of {number}",
        "feature_indices": indices,
        "feature_values": [r.random() for _ in indices],
        "targets": targets,
        "target_counts": [[r.randrange(1, 9) for _ in level] for level in targets],
    }


def generation(folder: pathlib.Path, r: random.Random, groups: list[list[int]]) -> pathlib.Path:
    """Writes a generation with a part per list of row groups' sizes; rows are numbered through."""
    (folder / "dataset").mkdir(parents=True)
    parts: list[dict[str, Any]] = []
    number = 0
    for shard, sizes in enumerate(groups):
        path = folder / "dataset" / f"part-{shard:05d}.parquet"
        schema = SCHEMA.with_metadata({"giantstream.format": "rows/1"})
        with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True, store_schema=False) as writer:
            for size in sizes:
                rows = [row(r, number + i) for i in range(size)]
                number += size
                writer.write_table(pa.Table.from_pylist(rows, schema))
        data = path.read_bytes()
        parts.append({"key": f"generations/000007/dataset/{path.name}", "shard": shard, "rows": sum(sizes)})
        parts[-1] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    write_document(
        folder,
        {
            "format": 3,
            "generation": 7,
            "status": "ready",
            "vectorizer": {"features": 50},
            "tree": {"levels": LEVELS},
            "dataset": parts,
        },
    )
    return folder


def write_document(folder: pathlib.Path, document: dict[str, Any]) -> None:
    """Writes generation.json with its seal (docs/format/store.md)."""
    body = json.dumps(document, indent=2).removesuffix("\n}").encode()
    (folder / "generation.json").write_bytes(b'%s,\n  "checksum": "crc32c:%08x"\n}\n' % (body, crc32c(body)))


def groups(r: random.Random, most: int = 12) -> list[list[int]]:
    """Sizes of row groups, a list per part; empty ones are among them."""
    return [[r.choice([0, 1, r.randrange(1, most)]) for _ in range(r.randrange(1, 7))] for _ in range(r.randrange(1, 4))]
