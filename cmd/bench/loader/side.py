"""One measurement: reads a training set for some epochs and prints what it took, as JSON.

Every side ends with the same tensors of each batch: indices, values and offsets of the features, and rows, clusters
and counts per level of the targets.
"""

import argparse
import json
import resource
import time

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import torch
from giantstream_torch import Batch, Generation, Order, StreamingDataset, TRAINING_COLUMNS

COLUMNS = list(TRAINING_COLUMNS)


def tensors(batch):
    return batch.features(), batch.targets()


def giantstream(args):
    return StreamingDataset(args.generation, Order(args.batch, seed=1, drop_last=False), transform=tensors)


def arrow(args):
    """In stored order, without a shuffle: what reading and decoding cost."""
    for batch in ds.dataset(f"{args.generation}/dataset", format="parquet").to_batches(columns=COLUMNS, batch_size=args.batch):
        yield tensors(Batch(0, 0, batch.num_rows, pa.Table.from_batches([batch])))


def samples(args):
    """The rows as samples for MosaicML: lists as arrays, lists of lists as one array and its lengths."""
    generation = Generation(args.generation)
    for part in generation.parts:
        for table in generation.stored(part, COLUMNS):
            for row in table.to_pylist():
                yield {
                    "node_id": row["node_id"],
                    "indices": np.array(row["feature_indices"], np.int32),
                    "values": np.array(row["feature_values"], np.float32),
                    "clusters": np.array(sum(row["targets"], []), np.int32),
                    "counts": np.array(sum(row["target_counts"], []), np.int32),
                    "levels": np.array([len(level) for level in row["targets"]], np.int32),
                }


TYPES = {
    "node_id": "str",
    "indices": "ndarray:int32",
    "values": "ndarray:float32",
    "clusters": "ndarray:int32",
    "counts": "ndarray:int32",
    "levels": "ndarray:int32",
}


def convert(args):
    from streaming import MDSWriter

    with MDSWriter(out=args.mds, columns=TYPES) as writer:
        for sample in samples(args):
            writer.write(sample)


def collate(rows):
    def whole(name, dtype):
        return torch.from_numpy(np.concatenate([r[name] for r in rows]).astype(dtype))

    offsets = torch.from_numpy(np.cumsum([0] + [len(r["indices"]) for r in rows]))
    clusters, counts = whole("clusters", np.int64), whole("counts", np.float32)
    lengths = np.concatenate([r["levels"] for r in rows])
    depth = len(rows[0]["levels"])
    level = np.repeat(np.tile(np.arange(depth), len(rows)), lengths)
    row = torch.from_numpy(np.repeat(np.repeat(np.arange(len(rows)), depth), lengths))
    at = [torch.from_numpy(np.flatnonzero(level == i)) for i in range(depth)]
    features = whole("indices", np.int64), whole("values", np.float32), offsets
    return features, [(row[i], clusters[i], counts[i]) for i in at]


def mosaicml(args):
    from streaming import StreamingDataset as Mosaic
    from torch.utils.data import DataLoader

    dataset = Mosaic(local=args.mds, shuffle=True, shuffle_seed=1, batch_size=args.batch)
    return DataLoader(dataset, batch_size=args.batch, num_workers=args.workers, collate_fn=collate)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=["giantstream", "arrow", "mosaicml", "convert"])
    parser.add_argument("--generation", required=True)
    parser.add_argument("--mds")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    if args.side == "convert":
        convert(args)
        return
    source = {"giantstream": giantstream, "mosaicml": mosaicml}.get(args.side, lambda args: None)(args)
    rows = features = targets = 0
    wall, cpu = time.perf_counter(), processor_time()
    for _ in range(args.epochs):
        for f, levels in source if source is not None else arrow(args):
            indices, offsets = (f[0], f[2]) if isinstance(f, tuple) else (f.indices, f.offsets)
            rows += len(offsets) - 1
            features += len(indices)
            targets += sum(len(x[1] if isinstance(x, tuple) else x.clusters) for x in levels)
    took = {"seconds": time.perf_counter() - wall}
    del source  # MosaicML's workers are waited for, so that their time counts
    took["cpu"] = processor_time() - cpu
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps(took | {"rows": rows, "features": features, "targets": targets, "peak_mib": peak / 1024}))


def processor_time():
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)


if __name__ == "__main__":
    main()
