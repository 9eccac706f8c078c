"""Encodes texts with a BERT model in PyTorch, or trains the model on them: the other half of make bench-bert.

It does what cmd/bench/bert does, on the same batches, in the usual way: transformers' BertModel with its default
attention, texts sorted by length for encoding and padded to the longest of their batch, no dropout.
"""

import argparse
import json
import resource
import time

import torch
from transformers import BertModel, BertTokenizerFast, logging

logging.set_verbosity_error()
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--mode", choices=["encode", "train"], required=True)
parser.add_argument("--model", required=True)
parser.add_argument("--texts", required=True)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--length", type=int, default=128)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--seconds", type=float, default=5)
args = parser.parse_args()

torch.set_num_threads(args.threads)
texts = open(args.texts, encoding="utf-8").read().splitlines()
tokenizer = BertTokenizerFast.from_pretrained(args.model)
model = BertModel.from_pretrained(
    args.model, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, add_pooling_layer=False)


def tokens(batch):
    return tokenizer(batch, padding=True, truncation=True, max_length=args.length, return_tensors="pt")


def pooled(batch):
    mask = batch["attention_mask"].unsqueeze(-1)
    return (model(**batch).last_hidden_state * mask).sum(1) / mask.sum(1)


def encode(texts):
    count, order = 0, sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    out = torch.empty(len(texts), model.config.hidden_size)
    with torch.inference_mode():
        for i in range(0, len(texts), args.batch):
            part = order[i : i + args.batch]
            batch = tokens([texts[j] for j in part])
            out[part] = torch.nn.functional.normalize(pooled(batch))
            count += int(batch["attention_mask"].sum())
    return count


def train(texts):
    batch = tokens(texts)
    optimizer.zero_grad()
    (pooled(batch).sum() / len(texts)).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return int(batch["attention_mask"].sum())


if args.mode == "encode":
    model.eval()
    step, batches = encode, [texts]
else:
    model.train()
    plain = [p for n, p in model.named_parameters() if n.endswith("bias") or "LayerNorm" in n]
    decayed = [p for n, p in model.named_parameters() if not (n.endswith("bias") or "LayerNorm" in n)]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=1e-5)
    step, batches = train, [texts[i : i + args.batch] for i in range(0, len(texts), args.batch)]

step(batches[0][:64])  # not counted
before = resource.getrusage(resource.RUSAGE_SELF)
began, done, i = time.perf_counter(), 0, 0
while time.perf_counter() - began < args.seconds:
    done += step(batches[i % len(batches)])
    i += 1
seconds = time.perf_counter() - began
after = resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
print(json.dumps({"tokens": done, "seconds": seconds, "cpu": cpu, "peak_mib": after.ru_maxrss / 1024}))
