"""A generation's folder: its document, and the parts of its training set (docs/format/generation.md)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from .crc32c import crc32c
from .errors import DamagedObject, DatasetError, MissingObject
from .order import Ints

_SEAL = re.compile(rb',\n  "checksum": "crc32c:([0-9a-f]{8})"\n}\n\Z')
_PIECE = 8 << 20  # bytes of an object that are read at once
_ATTEMPTS = 4
_DAMAGE = "run `giantstream verify` on the store; a new generation replaces a damaged one"


@dataclass(frozen=True)
class Part:
    """An object of the training set, as generation.json describes it."""

    path: str  # in the file system
    shard: int
    rows: int
    bytes: int
    checksum: str | int  # the SHA-256 in hexadecimal; of older releases the CRC-32C


class Generation:
    """A complete generation, in a directory or at s3://bucket/prefix/generations/000001.

    Opening it reads generation.json and the footers of the parts, and compares the parts' sizes and
    rows with generation.json. place may be any URI that pyarrow.fs knows; filesystem, where given,
    is what place is a path in (for credentials or endpoints of its own).

    Instances can be pickled, and used after a fork: every process opens files of its own.
    """

    def __init__(self, place: str | os.PathLike[str], filesystem: fs.FileSystem | None = None) -> None:
        self._place = os.fspath(place).rstrip("/")
        self._filesystem = filesystem
        self._opened_by = -1
        self._document = self._read_document()
        self._parts = self._listed_parts()
        with ThreadPoolExecutor(8) as pool:
            self._footers = list(pool.map(self._read_footer, self._parts))
        groups = [(p, g) for p, footer in enumerate(self._footers) for g in range(footer.num_row_groups)]
        sizes = [self._footers[p].row_group(g).num_rows for p, g in groups]
        self._groups = [at for at, rows in zip(groups, sizes) if rows]
        self._sizes: Ints = np.array([rows for rows in sizes if rows], dtype=np.int64)

    def __len__(self) -> int:
        """Rows of the training set."""
        return int(self._sizes.sum())

    @property
    def number(self) -> int:
        return int(self.document["generation"])

    @property
    def document(self) -> dict[str, Any]:
        """generation.json."""
        return self._document

    @property
    def features(self) -> int:
        """Columns of Ψ: feature_indices are below it."""
        return int(self.document["vectorizer"]["features"])

    @property
    def levels(self) -> list[int]:
        """Clusters of every level of the label tree, coarse to fine."""
        return [int(clusters) for clusters in self.document["tree"]["levels"]]

    @property
    def parts(self) -> Sequence[Part]:
        """The objects of the training set in order of key."""
        return self._parts

    @property
    def sizes(self) -> Ints:
        """Rows of every row group that is not empty, in the order of the parts."""
        return self._sizes

    @property
    def is_local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)

    @property
    def filesystem(self) -> fs.FileSystem:
        """The file system of Part.path; one of this process, since a client of S3 does not survive a fork."""
        self._in_this_process()
        return self._fs

    def fingerprint(self) -> str:
        """The same wherever the generation is stored, and another for another training set."""
        parts = [[part.shard, part.rows, part.bytes, part.checksum] for part in self._parts]
        return f"{self.number}-{crc32c(json.dumps(parts).encode()):08x}"

    def stored(self, part: Part, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of a part in stored order, ascending by node_id: a table per row group."""
        number = self._parts.index(part)
        for group, (at, _) in enumerate(self._groups):
            if at == number:
                yield self.read_group(group, columns)

    def read_group(self, group: int, columns: Sequence[str]) -> pa.Table:
        """A row group, numbered as in sizes. Safe for concurrent use.

        The checksums of its pages are verified. What fails is tried again, with a fresh connection,
        for a few seconds: a training of days should not end with a hiccup of the store.
        """
        number, local = self._groups[group]
        part = self._parts[number]
        for attempt in range(_ATTEMPTS):
            try:
                file = pq.ParquetFile(
                    self._open(part.path, again=attempt > 0),
                    metadata=self._footers[number],
                    pre_buffer=True,
                    page_checksum_verification=True,
                )
                # One thread a row group: the dataset reads several at once.
                return file.read_row_group(local, columns=list(columns), use_threads=False)
            except FileNotFoundError as e:
                raise self._missing(part.path) from e
            except (OSError, ValueError, pa.ArrowException) as e:
                if attempt == _ATTEMPTS - 1:
                    raise DamagedObject(
                        f"row group {local} of {part.path} cannot be read after {_ATTEMPTS} attempts: {e}; "
                        f"check that the store can be reached, then {_DAMAGE}"
                    ) from e
                time.sleep(0.1 * 5**attempt)  # 0.1, 0.5 and 2.5 s
        raise AssertionError("unreachable")

    def no_rows(self, columns: Sequence[str]) -> pa.Table:
        """A table without rows, for a share that has none."""
        schema = self._footers[0].schema.to_arrow_schema()
        return pa.schema([schema.field(name) for name in columns]).empty_table()

    def verify(self, rank: int = 0, ranks: int = 1) -> None:
        """Reads the rank's share of the parts whole and compares their checksums with generation.json."""
        for part in self._parts[rank::ranks]:
            sha256, crc = hashlib.sha256(), 0
            with self.filesystem.open_input_stream(part.path) as f:
                while piece := f.read(_PIECE):
                    if isinstance(part.checksum, str):
                        sha256.update(piece)
                    else:
                        crc = crc32c(piece, crc)
            found = sha256.hexdigest() if isinstance(part.checksum, str) else crc
            if found != part.checksum:
                raise DamagedObject(
                    f"{part.path} has the checksum {found}, generation.json says {part.checksum}; {_DAMAGE}"
                )

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuses columns that a part lacks."""
        for part, footer in zip(self._parts, self._footers):
            has = footer.schema.to_arrow_schema().names
            if lacks := [c for c in columns if c not in has]:
                raise DatasetError(f"{part.path} has no column {', '.join(lacks)}; it has {', '.join(has)}")

    def __getstate__(self) -> dict[str, Any]:
        return {name: v for name, v in vars(self).items() if name not in ("_fs", "_files")} | {"_opened_by": -1}

    def _in_this_process(self) -> None:
        if self._opened_by == os.getpid():
            return
        if self._filesystem is not None:
            self._fs, self._root = self._filesystem, self._place
        elif "://" in self._place:
            self._fs, self._root = fs.FileSystem.from_uri(self._place)
        else:
            self._fs, self._root = fs.LocalFileSystem(), self._place
        self._files: dict[str, pa.NativeFile] = {}
        self._opened_by = os.getpid()

    def _open(self, path: str, again: bool) -> pa.NativeFile:
        """A file of this process; its reads at given places may be concurrent."""
        self._in_this_process()
        file = self._files.get(path)
        if file is None or again:
            file = self._files[path] = self._fs.open_input_file(path)
        return file

    def _read_document(self) -> dict[str, Any]:
        self._in_this_process()
        path = f"{self._root}/generation.json"
        data = self._read(path)
        if seal := _SEAL.search(data):
            if int(seal[1], 16) != crc32c(data[: seal.start()]):
                raise DamagedObject(f"the checksum of {path} does not match its bytes; {_DAMAGE}")
        try:
            document = json.loads(data)
            version, status = document["format"], document["status"]
        except (ValueError, KeyError, TypeError) as e:
            raise DamagedObject(f"{path} is no document of a generation: {e!r}; {_DAMAGE}") from e
        if version not in (1, 2, 3):
            raise DatasetError(f"{path} has format {version}; this package reads 1 to 3: install a newer one")
        if version > 1 and not seal:
            raise DamagedObject(f"{path} has lost its checksum; {_DAMAGE}")
        if status != "ready":
            raise DatasetError(f"generation {document['generation']} is {status}, not ready; choose one that is")
        if self._fs.get_file_info(f"{self._root}/damaged.json").type == fs.FileType.File:
            raise DamagedObject(f"generation {document['generation']} is marked as damaged (damaged.json); {_DAMAGE}")
        return dict(document)

    def _read(self, path: str) -> bytes:
        try:
            with self._fs.open_input_stream(path) as f:
                return bytes(f.read())
        except FileNotFoundError as e:
            raise MissingObject(f"{path} is missing; name a folder generations/<number> of a store") from e

    def _listed_parts(self) -> list[Part]:
        try:
            parts = [
                Part(f"{self._root}/{_below(e['key'])}", int(e["shard"]), int(e["rows"]), int(e["bytes"]), _checksum(e))
                for e in self.document.get("dataset") or []
            ]
        except (ValueError, KeyError, TypeError, IndexError) as e:
            raise DamagedObject(f"generation.json does not describe its training set: {e!r}; {_DAMAGE}") from e
        if not parts:
            raise DatasetError(f"generation {self.number} has no training set: no node had a neighbour to learn from")
        return sorted(parts, key=lambda part: part.path)

    def _read_footer(self, part: Part) -> pq.FileMetaData:
        try:
            file = self._open(part.path, again=False)
            size = file.size()
            if size != part.bytes:
                raise DamagedObject(f"{part.path} has {size} bytes, generation.json says {part.bytes}; {_DAMAGE}")
            footer = pq.read_metadata(file)
        except FileNotFoundError as e:
            raise self._missing(part.path) from e
        except (OSError, ValueError, pa.ArrowException) as e:
            raise DamagedObject(f"the footer of {part.path} cannot be read: {e}; {_DAMAGE}") from e
        name = (footer.metadata or {}).get(b"giantstream.format", b"rows/1").decode()
        if name != "rows/1":
            raise DatasetError(f"{part.path} has format {name}; this package reads rows/1: install a newer one")
        if footer.num_rows != part.rows:
            raise DamagedObject(f"{part.path} has {footer.num_rows} rows, generation.json says {part.rows}; {_DAMAGE}")
        return footer

    def _missing(self, path: str) -> MissingObject:
        return MissingObject(
            f"{path} is missing; generations older than the newest few are pruned: choose a newer one, or {_DAMAGE}"
        )


def _checksum(part: dict[str, Any]) -> str | int:
    return str(part["sha256"]) if "sha256" in part else int(part["crc32c"])


def _below(key: str) -> str:
    """An object's key below its generation: dataset/part-00000.parquet."""
    return "/".join(key.split("/")[-2:])
