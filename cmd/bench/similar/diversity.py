"""Measures what diversity does to the answers about 500 items of a store.

    python3 diversity.py GIANTSTREAM STORE

prints, for each diversity: the mean cosine of ten answers with the item, their mean cosine with each other, and how many
of the plain ten are among them. It needs numpy and pyarrow, and a store in a folder with one generation.
"""

import glob
import json
import random
import subprocess
import sys

import numpy
import pyarrow.parquet


def embeddings(store):
    vectors = {}
    for file in sorted(glob.glob(f"{store}/generations/*/embeddings/*.parquet")):
        table = pyarrow.parquet.read_table(file, columns=["node_id", "embedding"])
        for node, vector in zip(table["node_id"].to_pylist(), table["embedding"].to_pylist()):
            if vector and numpy.any(vector):
                vectors[node] = numpy.array(vector) / numpy.linalg.norm(vector)
    return vectors


def main():
    program, store = sys.argv[1:]
    vectors, plain = embeddings(store), {}
    ids = sorted(vectors)
    random.Random(1).shuffle(ids)
    ids = ids[:500]
    for diversity in (0, 0.1, 0.2, 0.3, 0.5, 0.7, 1):
        questions = "".join(json.dumps({"id": i, "k": 10, "diversity": diversity}) + "\n" for i in ids)
        answers = subprocess.run([program, "similar", "--questions", "-", "--store", store], input=questions,
                                 capture_output=True, text=True, check=True).stdout
        asked, alike, kept = [], [], []
        for i, line in zip(ids, answers.splitlines(), strict=True):
            results = json.loads(line)["results"]
            v = numpy.array([vectors[r["id"]] for r in results])
            asked.append(numpy.mean([r["cosine"] for r in results]))
            alike.append(((v @ v.T).sum() - len(v)) / (len(v) * (len(v) - 1)))
            kept.append(len({r["id"] for r in results} & plain.setdefault(i, {r["id"] for r in results})))
        print(f"| {diversity} | {numpy.mean(asked):.3f} | {numpy.mean(alike):.3f} | {numpy.mean(kept):.1f} |", flush=True)


main()
