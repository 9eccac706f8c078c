"""Keeps a vector index current from giantstream's embeddings topic.

    python consume.py follow --brokers HOST:PORT --topic embeddings --index index.db [--until-end]
    python consume.py search --index index.db NODE

The index is one SQLite file. A batch of records and the offsets behind them
are one transaction, so a consumer that dies anywhere continues exactly where its index stands;
offsets committed to Kafka could be ahead of the index, or behind it. Put
another index in the place of Index: what it must keep is this promise.
"""

import argparse
import json
import sqlite3
import sys

import numpy as np


class Index:
    """Vectors by node id, and per partition the offset of the first record that is not in."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript("""
            PRAGMA journal_mode = WAL;
            CREATE TABLE IF NOT EXISTS vectors (node_id TEXT PRIMARY KEY, generation INTEGER, vector BLOB) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS offsets (topic TEXT, part INTEGER, next INTEGER, PRIMARY KEY (topic, part));
        """)

    def offset(self, topic, part):
        row = self.db.execute("SELECT next FROM offsets WHERE topic = ? AND part = ?", (topic, part)).fetchone()
        return row and row[0]

    def apply(self, records, offsets):
        """records: (node id, generation, vector or None), in the order of their partitions.
        offsets: {(topic, partition): next}. All of it or nothing."""
        with self.db:
            self.db.execute("BEGIN")
            for node, generation, vector in records:
                if vector is None:
                    self.db.execute("DELETE FROM vectors WHERE node_id = ?", (node,))
                else:
                    self.db.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", (node, generation, vector.tobytes()))
            for (topic, part), following in offsets.items():
                self.db.execute("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)", (topic, part, following))

    def search(self, node, k=10):
        """The k nearest by cosine, exact. Only vectors of one generation can be compared."""
        generation, query = self.db.execute("SELECT generation, vector FROM vectors WHERE node_id = ?", (node,)).fetchone() or (None, None)
        if query is None:
            sys.exit(f"node {node!r} is not in the index")
        ids, vectors = zip(*self.db.execute("SELECT node_id, vector FROM vectors WHERE generation = ?", (generation,)))
        vectors = np.frombuffer(b"".join(vectors), "<f4").reshape(len(ids), -1)
        query = np.frombuffer(query, "<f4")
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)  # 1, but for the rounding of float16 and int8
        cosines = vectors @ query / np.where(lengths == 0, 1, lengths)
        order = [i for i in np.argsort(-cosines, kind="stable") if ids[i] != node][:k]
        return [(ids[i], float(cosines[i])) for i in order]


def decode(key, value, headers):
    """A record of the topic, in either format: docs/format/embeddings.md."""
    headers = dict(headers or [])
    node = key.decode()
    if value is None or headers.get("status") == b"no_text":  # deleted, or without text: no vector
        return node, int(headers.get("generation", b"0")), None
    if "dim" in headers:  # binary
        kind = headers.get("type", b"float32").decode()
        vector = np.frombuffer(value, {"float32": "<f4", "float16": "<f2", "int8": "i1"}[kind])
        if len(vector) != int(headers["dim"]):
            raise ValueError(f"{node}: {len(vector)} numbers, the header says {int(headers['dim'])}")
        return node, int(headers["generation"]), floats(vector, kind, headers.get("scale"))
    record = json.loads(value)
    if record.get("status") == "no_text":
        return node, record["generation"], None
    kind = record.get("type", "float32")
    vector = np.array(record["embedding"], "<f2" if kind == "float16" else "<f4")
    return node, record["generation"], floats(vector, kind, record.get("scale"))


def floats(vector, kind, scale):
    """The numbers of a vector of any type as float32, of length 1 but for the rounding of the narrow types."""
    vector = vector.astype("<f4")
    if kind == "int8":
        vector *= np.float32(scale)
    return vector


def follow(index, brokers, topic, until_end):
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

    consumer = Consumer({
        "bootstrap.servers": brokers,
        "group.id": "vector-index",  # the client wants one; no offsets are committed to it
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
    })
    found = consumer.list_topics(topic, timeout=30).topics[topic]
    if found.error:
        raise KafkaException(found.error)
    places = []
    for part in found.partitions:
        at = index.offset(topic, part)
        places.append(TopicPartition(topic, part, OFFSET_BEGINNING if at is None else at))
    consumer.assign(places)
    applied, at_end = 0, set()
    try:
        while not (until_end and len(at_end) == len(places)):
            records, offsets = [], {}
            for message in consumer.consume(num_messages=1000, timeout=1.0):
                error = message.error()
                if error is None:
                    if "control" not in dict(message.headers() or []):  # sink.control_records: no embedding
                        records.append(decode(message.key(), message.value(), message.headers()))
                    offsets[message.topic(), message.partition()] = message.offset() + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    at_end.add(message.partition())
                else:
                    raise KafkaException(error)
            if offsets:
                index.apply(records, offsets)
                applied += len(records)
    finally:
        consumer.close()
    return applied


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("follow", help="apply records until stopped")
    command.add_argument("--brokers", required=True)
    command.add_argument("--topic", default="embeddings")
    command.add_argument("--until-end", action="store_true", help="stop at the end of every partition")
    command.add_argument("--index", required=True)
    command = commands.add_parser("search", help="nearest neighbours of a node")
    command.add_argument("--index", required=True)
    command.add_argument("node")
    args = parser.parse_args()
    index = Index(args.index)
    if args.command == "search":
        for node, cosine in index.search(args.node):
            print(f"{cosine:.4f}\t{node}")
        return
    try:
        print(f"{follow(index, args.brokers, args.topic, args.until_end)} records applied")
    except KeyboardInterrupt:
        pass  # everything applied is in the file


if __name__ == "__main__":
    main()
