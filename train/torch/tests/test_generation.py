from __future__ import annotations

import json
import pathlib
import random
import shutil
import tempfile
import unittest
import unittest.mock
from typing import Any

import pyarrow.parquet as pq

from giantstream_torch import DamagedObject, DatasetError, Generation, MissingObject, Order, StreamingDataset
from giantstream_torch.crc32c import crc32c

from . import made


def slow_crc32c(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


class ChecksumTest(unittest.TestCase):
    def test_crc32c(self) -> None:
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)  # the check value of the CRC catalogue
        r = random.Random(1)
        for size in [0, 1, 2, 3, 255, 256, 257, 511, 513, 1000, 70_001]:
            data = r.randbytes(size)
            cut = r.randrange(size + 1)
            self.assertEqual(crc32c(data), slow_crc32c(data))
            self.assertEqual(crc32c(data[cut:], crc32c(data[:cut])), crc32c(data))
        data = r.randbytes(5 << 20)  # more than one piece
        self.assertEqual(crc32c(data), crc32c(data[3 << 20 :], crc32c(data[: 3 << 20])))


class GenerationTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = made.generation(pathlib.Path(folder.name) / "g", random.Random(8), [[30, 0, 10], [5]])
        self.part = self.place / "dataset" / "part-00000.parquet"
        sleep = unittest.mock.patch("time.sleep")
        sleep.start()
        self.addCleanup(sleep.stop)

    def rewrite(self, **changed: Any) -> None:
        document = json.loads((self.place / "generation.json").read_text())
        del document["checksum"]
        made.write_document(self.place, document | changed)

    def read(self) -> Any:
        return [b.table for b in StreamingDataset(self.place, Order(5), columns=made.SCHEMA.names)]

    def test_opened(self) -> None:
        generation = Generation(self.place)
        self.assertEqual((len(generation), generation.number, generation.features), (45, 7, 50))
        self.assertEqual((generation.levels, generation.sizes.tolist()), (made.LEVELS, [30, 10, 5]))
        generation.verify()
        ids = [t["node_id"].to_pylist() for p in generation.parts for t in generation.stored(p, ["node_id"])]
        self.assertEqual(sum(ids, []), [f"n{i:06d}" for i in range(45)])
        copy = shutil.copytree(self.place, self.place.parent / "copy")
        self.assertEqual(Generation(copy).fingerprint(), generation.fingerprint())

    def test_missing(self) -> None:
        with self.assertRaisesRegex(MissingObject, "generation.json is missing; name a folder"):
            Generation(self.place / "nowhere")
        self.part.unlink()
        with self.assertRaisesRegex(MissingObject, "part-00000.parquet is missing"):
            Generation(self.place)

    def test_documents_that_are_refused(self) -> None:
        for changed, error, says in (
            ({"status": "building"}, DatasetError, "is building, not ready"),
            ({"format": 4}, DatasetError, "install a newer one"),
            ({"dataset": [{"key": "x"}]}, DamagedObject, "does not describe its training set"),
            ({"dataset": []}, DatasetError, "no training set"),
        ):
            with self.subTest(changed):
                self.rewrite(**({"format": 2, "status": "ready"} | changed))
                with self.assertRaisesRegex(error, says):
                    Generation(self.place)

    def test_a_changed_byte_of_the_document(self) -> None:
        path = self.place / "generation.json"
        data = path.read_bytes()
        for at in range(len(data)):
            path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
            with self.assertRaises(DatasetError, msg=f"byte {at}"):
                Generation(self.place)

    def test_marked_as_damaged(self) -> None:
        (self.place / "damaged.json").write_text("{}")
        with self.assertRaisesRegex(DamagedObject, "marked as damaged"):
            Generation(self.place)

    def test_parts_of_another_size(self) -> None:
        data = self.part.read_bytes()
        self.part.write_bytes(data[:-1])
        with self.assertRaisesRegex(DamagedObject, f"has {len(data) - 1} bytes, generation.json says {len(data)}"):
            Generation(self.place)

    def test_parts_with_other_rows(self) -> None:
        document = json.loads((self.place / "generation.json").read_text())
        document["dataset"][0]["rows"] -= 1
        self.rewrite(dataset=document["dataset"])
        with self.assertRaisesRegex(DamagedObject, "has 40 rows, generation.json says 39"):
            Generation(self.place)

    def test_a_changed_byte_of_a_part(self) -> None:
        want = self.read()
        data = self.part.read_bytes()
        pages = int.from_bytes(data[-8:-4], "little")  # length of the footer: the rest are pages
        found = 0
        places = random.Random(1).sample(range(4, len(data)), 150)
        for at in places:
            self.part.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
            with self.assertRaisesRegex(DamagedObject, "has the checksum"):
                Generation(self.place).verify() if at < len(data) - 8 - pages else self.verify_bytes()
            try:
                self.assertEqual(self.read(), want, f"byte {at} changed rows unnoticed")
            except DatasetError:
                found += 1
        self.assertGreater(found, len(places) // 2)

    def verify_bytes(self) -> None:
        """verify of a part whose footer may be past reading."""
        try:
            Generation(self.place).verify()
        except DamagedObject as e:
            raise DamagedObject(f"has the checksum {e}") from e

    def test_a_store_that_hiccups(self) -> None:
        want = self.read()
        fails = iter([True, False, True, True, False] + [False] * 100)
        inner = pq.ParquetFile.read_row_group

        def read_row_group(*args: Any, **options: Any) -> Any:
            if next(fails):
                raise OSError("curl error: the peer reset the connection")
            return inner(*args, **options)

        with unittest.mock.patch.object(pq.ParquetFile, "read_row_group", read_row_group):
            dataset = StreamingDataset(self.place, Order(5), columns=made.SCHEMA.names, readers=1)
            self.assertEqual([b.table for b in dataset], want)
            fails = iter([True] * 100)
            with self.assertRaisesRegex(DatasetError, "row group 0 of .* after 4 attempts: curl error"):
                dataset.generation.read_group(0, ["node_id"])
