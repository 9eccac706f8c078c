"""Trains an encoder on a generation's training set with PyTorch.

    python train.py STORE/generations/000001 --out run [--epochs 3] [--model HUGGING_FACE_DIR]

The objective is GIANT's (Chien et al., 2022, section 3): from a node's text, predict the
clusters of its neighbours at every level of the label tree. The encoder is a
bag of n-gram vectors over the features in the files, or a transformer on the
texts. Started again, it goes on after the last checkpoint and ends with the same weights
as if it had not stopped. Embeddings are written in giantstream's format.
"""

import argparse
import json
import os
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn
from torch.nn import functional as F

from dataset import Generation


class Bag(nn.Module):
    """The sum of the vectors of a text's n-grams, by TF-IDF weight, to length 1."""

    columns = ["feature_indices", "feature_values"]

    def __init__(self, features, dim):
        super().__init__()
        self.dim = dim
        self.table = nn.EmbeddingBag(features, dim, mode="sum", include_last_offset=True)
        nn.init.normal_(self.table.weight, std=dim**-0.5)

    def forward(self, rows):
        index = torch.tensor([i for r in rows for i in r["feature_indices"]], dtype=torch.long)
        value = torch.tensor([v for r in rows for v in r["feature_values"]], dtype=torch.float32)
        ends = torch.tensor([0] + [len(r["feature_indices"]) for r in rows]).cumsum(0)
        return F.normalize(self.table(index, ends, per_sample_weights=value), dim=1)


class Transformer(nn.Module):
    """Mean of the last layer, to length 1; special tokens count, as in docs/format/bert.md."""

    columns = ["text"]

    def __init__(self, path):
        from transformers import AutoModel, AutoTokenizer

        super().__init__()
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        self.model = AutoModel.from_pretrained(path)
        self.dim = self.model.config.hidden_size

    def forward(self, rows):
        tokens = self.tokenizer([r["text"] for r in rows], padding=True, truncation=True, max_length=128, return_tensors="pt")
        hidden = self.model(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1)
        return F.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)


class Trainer(nn.Module):
    def __init__(self, encoder, levels):
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleList(nn.Linear(encoder.dim, clusters) for clusters in levels)

    def loss(self, rows, objective):
        z = self.encoder(rows)
        total = 0.0
        for level, head in enumerate(self.heads):
            scores = head(z)
            wanted = torch.zeros_like(scores)  # how many of a node's neighbours each cluster holds
            for i, r in enumerate(rows):
                wanted[i, r["targets"][level]] = torch.tensor(r["target_counts"][level], dtype=torch.float32)
            if objective == "softmax":
                share = wanted / wanted.sum(1, keepdim=True)
                total = total - (share * F.log_softmax(scores, dim=1)).sum(1).mean()
            else:  # squared hinge, a binary decision per cluster
                sign = torch.where(wanted > 0, 1.0, -1.0)
                total = total + F.relu(1 - sign * scores).square().sum(1).mean()
        return total / len(self.heads)


def batches(generation, args, columns, epoch, position):
    """Batches of an epoch and the position behind each; fewer rows than a batch are left at the end."""
    rows = []
    for row in generation.epoch(args.seed, epoch, columns, position):
        position += 1
        rows.append(row)
        if len(rows) == args.batch:
            yield rows, position
            rows = []


def train(generation, trainer, args, out):
    # The generator of the weights' dropout is seeded per step, so that a resumed run draws the same.
    optimizer = torch.optim.AdamW(trainer.parameters(), lr=args.rate, weight_decay=0.01)
    progress = {"epoch": 0, "position": 0, "steps": 0, "losses": [], "sum": 0.0, "count": 0}
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        trainer.load_state_dict(state["trainer"])
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state["moments"]})
        progress = json.loads(state["progress"])
        print(f"goes on in epoch {progress['epoch']} at position {progress['position']}")

    def save():  # tensors and texts only, which PyTorch before 2 loads safely, too
        state = {"trainer": trainer.state_dict(), "moments": optimizer.state_dict()["state"], "progress": json.dumps(progress)}
        torch.save(state, f"{checkpoint}.new")
        os.replace(f"{checkpoint}.new", checkpoint)

    columns = ["node_id", "targets", "target_counts", *trainer.encoder.columns]
    trainer.train()
    while progress["epoch"] < args.epochs:
        for rows, position in batches(generation, args, columns, progress["epoch"], progress["position"]):
            progress["position"], progress["steps"] = position, progress["steps"] + 1
            rows = [r for r in rows if all(r["targets"])]  # without neighbours in the tree there is nothing to learn
            if rows:
                torch.manual_seed(args.seed + progress["steps"])
                optimizer.zero_grad()
                loss = trainer.loss(rows, args.objective)
                loss.backward()
                optimizer.step()
                progress["sum"], progress["count"] = progress["sum"] + loss.item(), progress["count"] + 1
            if progress["steps"] % args.every == 0:
                save()
            if progress["steps"] == args.stop_after:
                return None
        progress["losses"].append(progress["sum"] / max(progress["count"], 1))
        progress.update(epoch=progress["epoch"] + 1, position=0, sum=0.0, count=0)
        save()
        print(f"epoch {progress['epoch']}: loss {progress['losses'][-1]:.4f}")
    return progress["losses"]


SCHEMA = pa.schema([
    pa.field("node_id", pa.string(), nullable=False),
    pa.field("embedding", pa.list_(pa.field("element", pa.float32(), nullable=False)), nullable=False),
    pa.field("generation", pa.int64(), nullable=False),
    pa.field("event_time", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("shard", pa.int32(), nullable=False),
    pa.field("seq", pa.int64(), nullable=False),
    pa.field("status", pa.string(), nullable=False),
])


@torch.no_grad()
def embed(generation, trainer, args, out):
    """One part per shard, ascending by node id, as docs/format/embeddings.md has it."""
    trainer.eval()
    number = generation.doc["generation"]
    # The training set does not say which manifest committed a row; the generation's own embeddings do.
    committed = {}
    for path in generation.paths("embeddings"):
        table = pq.read_table(path, columns=["node_id", "seq"], filesystem=generation.fs)
        committed.update(zip(table["node_id"].to_pylist(), table["seq"].to_pylist()))
    writers, rows = {}, []

    def flush():
        z = trainer.encoder([r for _, r in rows])
        for shard in dict.fromkeys(s for s, _ in rows):
            at = [i for i, (s, _) in enumerate(rows) if s == shard]
            table = pa.table({
                "node_id": [rows[i][1]["node_id"] for i in at],
                "embedding": [z[i].numpy() for i in at],
                "generation": [number] * len(at),
                "event_time": [rows[i][1]["event_time"] for i in at],
                "shard": [shard] * len(at),
                "seq": [committed.get(rows[i][1]["node_id"], 0) for i in at],
                "status": ["text"] * len(at),
            }, schema=SCHEMA.with_metadata({"giantstream.format": "embeddings/2", "giantstream.generation": str(number)}))
            if shard not in writers:
                writers[shard] = pq.ParquetWriter(folder / f"part-{shard:05d}.parquet", table.schema, compression="zstd",
                                                  write_page_checksum=True, store_schema=False)
            writers[shard].write_table(table)
        rows.clear()

    folder = out / "embeddings"
    folder.mkdir(exist_ok=True)
    for item in generation.stored(["node_id", "event_time", *trainer.encoder.columns]):
        rows.append(item)
        if len(rows) == 1024:
            flush()
    if rows:
        flush()
    for w in writers.values():
        w.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generation", help="directory or s3://bucket/prefix/generations/000001")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--model", help="Hugging Face directory to start from (default: a bag of n-grams)")
    parser.add_argument("--objective", choices=["softmax", "hinge"], default="softmax")
    parser.add_argument("--dim", type=int, default=256, help="of the bag")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, help="default 0.01, with --model 5e-5")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--stop-after", type=int, help="steps; to try the resume")
    args = parser.parse_args()
    args.rate = args.rate or (5e-5 if args.model else 0.01)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)

    generation = Generation(args.generation)
    encoder = Transformer(args.model) if args.model else Bag(generation.features, args.dim)
    trainer = Trainer(encoder, generation.levels)
    losses = train(generation, trainer, args, args.out)
    if losses is None:
        return
    embed(generation, trainer, args, args.out)
    print(json.dumps({"rows": len(generation), "losses": losses}))


if __name__ == "__main__":
    main()
