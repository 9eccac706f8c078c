"""Trains an encoder on a generation's training set with PyTorch.

    python train.py STORE/generations/000001 --out run [--epochs 3] [--model HUGGING_FACE_DIR]
    torchrun --nproc_per_node 8 train.py STORE/generations/000001 --out run --device cuda --precision bf16

The objective is GIANT's (Chien et al., 2022, section 3): from a node's text, predict the
clusters of its neighbours at every level of the label tree. The encoder is a
bag of n-gram vectors over the features in the files, or a transformer on the
texts. Started again, it resumes from the last checkpoint and ends with the same weights
as if it had not stopped, with any number of processes that divides the slices of a batch.
Embeddings are written in giantstream's format.
"""

import argparse
import json
import os
import pathlib
import signal
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import torch
import torch.distributed as dist
from giantstream_torch import Batch, Generation, Order, SlicedGradients, StreamingDataset, StreamingLoader
from torch import nn
from torch.nn import functional as F


class Bag(nn.Module):
    """The sum of the vectors of a text's n-grams, by TF-IDF weight, to length 1."""

    columns = ["feature_indices", "feature_values"]

    def __init__(self, features, dim):
        super().__init__()
        self.dim = dim
        self.table = nn.EmbeddingBag(features, dim, mode="sum", include_last_offset=True)
        nn.init.normal_(self.table.weight, std=dim**-0.5)

    def inputs(self, batch):
        f = batch.features()
        return {"indices": f.indices, "offsets": f.offsets, "weights": f.values}

    def forward(self, x):
        return F.normalize(self.table(x["indices"], x["offsets"], per_sample_weights=x["weights"]), dim=1)


class Transformer(nn.Module):
    """Mean of the last layer, to length 1; special tokens count, as in docs/format/bert.md."""

    columns = ["text"]

    def __init__(self, path):
        from transformers import AutoModel, AutoTokenizer

        super().__init__()
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        self.model = AutoModel.from_pretrained(path)
        self.dim = self.model.config.hidden_size

    def inputs(self, batch):
        return dict(self.tokenizer(batch.texts(), padding=True, truncation=True, max_length=128, return_tensors="pt"))

    def forward(self, x):
        hidden = self.model(**x).last_hidden_state.float()
        mask = x["attention_mask"].unsqueeze(-1)
        return F.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)


@dataclass
class Examples:
    """A slice of a batch, ready for Trainer."""

    inputs: dict  # of the encoder
    wanted: list  # [rows, clusters] per level: how many of a node's neighbours each cluster holds
    weight: torch.Tensor  # [rows]: 0 without a neighbour at some level, for there is nothing to learn; else 1

    @classmethod
    def of(cls, batch, encoder, levels):
        wanted = [torch.zeros(len(batch), clusters) for clusters in levels]
        for counts, level in zip(wanted, batch.targets()):
            counts[level.rows, level.clusters] = level.counts
        weight = torch.stack([counts.sum(1) for counts in wanted]).min(0).values.clamp(max=1)
        return cls(encoder.inputs(batch), wanted, weight)

    def to(self, device):
        move = {name: x.to(device, non_blocking=True) for name, x in self.inputs.items()}
        return Examples(move, [w.to(device, non_blocking=True) for w in self.wanted], self.weight.to(device))


class Trainer(nn.Module):
    """Encoder and heads. The result is the sum of the rows' losses, so that it can be divided by the rows of a batch."""

    def __init__(self, encoder, levels, objective):
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleList(nn.Linear(encoder.dim, clusters) for clusters in levels)
        self.objective = objective

    def forward(self, examples):
        z = self.encoder(examples.inputs)
        total = 0.0
        for wanted, head in zip(examples.wanted, self.heads):
            scores = head(z).float()
            if self.objective == "softmax":
                share = wanted / wanted.sum(1, keepdim=True).clamp(min=1)
                losses = -(share * F.log_softmax(scores, dim=1)).sum(1)
            else:  # squared hinge, a binary decision per cluster
                sign = torch.where(wanted > 0, 1.0, -1.0)
                losses = F.relu(1 - sign * scores).square().sum(1)
            total = total + (losses * examples.weight).sum()
        return total / len(self.heads)


class Checkpoint:
    """What a run needs to go on: written by rank 0 alone, read by all."""

    def __init__(self, path, dataset, trainer, optimizer):
        self.path, self.dataset, self.trainer, self.optimizer = path, dataset, trainer, optimizer

    def load(self, progress):
        if not self.path.exists():
            return progress
        state = torch.load(self.path, map_location="cpu", weights_only=True)
        progress = json.loads(state["progress"])
        self.trainer.load_state_dict(state["trainer"])
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state["moments"]})
        self.dataset.load_state_dict(progress["dataset"])
        return progress

    def save(self, progress):  # tensors and texts only, which PyTorch before 2 loads safely, too
        if rank() != 0:
            return
        progress = {**progress, "dataset": self.dataset.state_dict()}
        moments = self.optimizer.state_dict()["state"]
        state = {"trainer": self.trainer.state_dict(), "moments": moments, "progress": json.dumps(progress)}
        new = self.path.with_suffix(".new")
        torch.save(state, new)
        with open(new, "rb") as f:
            os.fsync(f.fileno())
        os.replace(new, self.path)


def rank():
    return dist.get_rank() if dist.is_initialized() else 0


def ranks():
    return dist.get_world_size() if dist.is_initialized() else 1


def train(generation, trainer, args):
    """The mean loss of each epoch, over the rows of all ranks."""
    encoder, levels = trainer.encoder, generation.levels
    gradients = SlicedGradients(trainer.parameters(), args.slices)
    dataset = StreamingDataset(
        generation,
        Order(args.batch, seed=args.seed, streams=args.streams),
        columns=["targets", "target_counts", *encoder.columns],
        transform=lambda batch: [Examples.of(part, encoder, levels) for part in gradients.split(batch)],
    )
    optimizer = torch.optim.AdamW(trainer.parameters(), lr=args.rate, weight_decay=0.01)
    checkpoint = Checkpoint(args.out / "checkpoint.pt", dataset, trainer, optimizer)
    progress = checkpoint.load({"steps": 0, "losses": [], "sum": 0.0, "count": 0})
    if progress["steps"]:
        say(f"resumes in epoch {dataset.epoch} at batch {dataset.batch} with {ranks()} ranks")
    trainer.train()
    while dataset.epoch < args.epochs:
        for slices in StreamingLoader(dataset):
            parts = dict(zip(gradients.own, slices))
            loss, rows = step(trainer, optimizer, gradients, parts, (args.seed + progress["steps"]) * 1024, args)
            progress["steps"] += 1
            progress["sum"] += loss
            progress["count"] += rows
            if progress["steps"] % args.every == 0:
                checkpoint.save(progress)
            if progress["steps"] == args.kill_after:
                os.kill(os.getpid(), signal.SIGKILL)
        progress["losses"].append(progress["sum"] / max(progress["count"], 1))
        progress.update(sum=0.0, count=0)
        checkpoint.save(progress)
        say(f"epoch {dataset.epoch}: loss {progress['losses'][-1]:.4f}")
    return progress["losses"]


def step(trainer, optimizer, gradients, parts, seed, args):
    """One step of the optimizer; the sum of the losses and the number of rows that have one, over all ranks."""
    rows = total(torch.stack([part.weight.sum() for part in parts.values()]).sum().double().to(args.device)).item()
    if rows == 0:  # on every rank
        return 0.0, 0

    def loss(number):
        # Dropout draws from a generator that is seeded per slice, so that any rank and a resumed run draw the same.
        torch.manual_seed(seed + number)
        with torch.autocast(args.device.type, dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            return trainer(parts[number].to(args.device)) / rows

    mean = gradients.backward(loss)
    optimizer.step()
    return mean.item() * rows, int(rows)


def total(x):
    """The sum over all ranks, of whole numbers: it is the same in any order."""
    if dist.is_initialized():
        dist.all_reduce(x)
    return x


def say(line):
    if rank() == 0:
        print(line, flush=True)


SCHEMA = pa.schema([
    pa.field("node_id", pa.string(), nullable=False),
    pa.field("embedding", pa.list_(pa.field("element", pa.float32(), nullable=False)), nullable=False),
    pa.field("generation", pa.int64(), nullable=False),
    pa.field("event_time", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("shard", pa.int32(), nullable=False),
    pa.field("seq", pa.int64(), nullable=False),
    pa.field("status", pa.string(), nullable=False),
])


def manifests(generation):
    """The shard and the number of the manifest that committed each node's row: the training set does not say it, the
    generation's own embeddings do.
    """
    root = generation.parts[0].path.rsplit("/dataset/", 1)[0]
    committed = {}
    for part in generation.document["embeddings"]:
        path = f"{root}/embeddings/{part['key'].rsplit('/', 1)[1]}"
        table = pq.read_table(path, columns=["node_id", "shard", "seq"], filesystem=generation.filesystem)
        committed.update((i, (shard, seq)) for i, shard, seq in zip(*(column.to_pylist() for column in table.columns)))
    return committed


@torch.no_grad()
def embed(generation, trainer, args):
    """One part for each of the training set, ascending by node id, as docs/format/embeddings.md has it. Ranks take
    the parts in turn.
    """
    trainer.eval()
    folder = args.out / "embeddings"
    folder.mkdir(exist_ok=True)
    schema = SCHEMA.with_metadata({"giantstream.format": "embeddings/2", "giantstream.generation": str(generation.number)})
    committed = manifests(generation)
    for number, part in list(enumerate(generation.parts))[rank() :: ranks()]:
        if part.rows == 0:
            continue
        columns = ["node_id", "event_time", *trainer.encoder.columns]
        file = folder / f"part-{number:05d}.parquet"
        with pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True, store_schema=False) as writer:
            for group in generation.stored(part, columns):
                for at in range(0, group.num_rows, 1024):
                    batch = Batch(0, 0, 0, group.slice(at, 1024))
                    x = {name: tensor.to(args.device) for name, tensor in trainer.encoder.inputs(batch).items()}
                    with torch.autocast(args.device.type, dtype=torch.bfloat16, enabled=args.precision == "bf16"):
                        z = trainer.encoder(x).float().cpu().numpy()
                    ids = batch.texts("node_id")
                    columns_of = {
                        "node_id": ids,
                        "embedding": list(z),
                        "generation": [generation.number] * len(ids),
                        "event_time": batch.table["event_time"],
                        "shard": [committed[i][0] for i in ids],
                        "seq": [committed[i][1] for i in ids],
                        "status": ["text"] * len(ids),
                    }
                    writer.write_table(pa.table(columns_of, schema=schema))


def device_of(name):
    """The device: with torchrun, --device cuda is the GPU of the process's local rank."""
    device = torch.device(name)
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise SystemExit("this PyTorch sees no GPU: install one with CUDA, or use --device cpu")
        if device.index is None:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    return device


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generation", help="directory or s3://bucket/prefix/generations/000001")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="with several machines, a folder that all see")
    parser.add_argument("--model", help="Hugging Face directory to start from (default: a bag of n-grams)")
    parser.add_argument("--objective", choices=["softmax", "hinge"], default="softmax")
    parser.add_argument("--dim", type=int, default=256, help="of the bag")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64, help="rows of a step, those of all ranks together")
    parser.add_argument("--slices", type=int, default=8, help="of a batch, a power of two; ranks divide them")
    parser.add_argument("--threads", type=int, default=1, help="of each process on the CPU; weights depend on it in the last bits")
    parser.add_argument("--streams", type=int, default=1, help="ranks that divide this read no row twice (giantstream_torch.Order)")
    parser.add_argument("--rate", type=float, help="default 0.01, with --model 5e-5")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32", help="bf16: autocast; weights stay float32")
    parser.add_argument("--verify", action="store_true", help="read the training set whole and verify its checksums before training")
    parser.add_argument("--every", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--kill-after", type=int, metavar="STEPS", help="end as a crash would; to try the resume")
    args = parser.parse_args()
    if args.batch % args.slices:
        parser.error(f"--batch {args.batch} is no multiple of --slices {args.slices}")
    args.rate = args.rate or (5e-5 if args.model else 0.01)
    args.out.mkdir(parents=True, exist_ok=True)
    args.device = device_of(args.device)
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)  # all ranks begin with the same weights
    if "WORLD_SIZE" in os.environ:  # torchrun
        dist.init_process_group("nccl" if args.device.type == "cuda" else "gloo")

    generation = Generation(args.generation)
    if args.verify:
        generation.verify(rank(), ranks())
    encoder = Transformer(args.model) if args.model else Bag(generation.features, args.dim)
    trainer = Trainer(encoder, generation.levels, args.objective).to(args.device)
    losses = train(generation, trainer, args)
    embed(generation, trainer, args)
    say(json.dumps({"rows": len(generation), "losses": losses}))
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
