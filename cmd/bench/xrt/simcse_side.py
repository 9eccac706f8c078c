"""Trains a BERT-family model on the texts alone, as unsupervised SimCSE does (Gao et al., EMNLP 2021), for comparison.

The same text goes through the model twice with other dropout, and must be nearer to itself than to the other texts of the
batch (InfoNCE over cosines). Texts come from the problem.json that `xrt -export` has written; no link is seen. Embeddings of
all nodes go to a file, which `xrt -judge` measures, figures to standard output. Needs torch and transformers.
"""

import argparse
import json
import os
import resource
import time

import torch
from torch.nn.functional import cross_entropy, normalize
from transformers import AutoModel, AutoTokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, help="folder with problem.json; embeddings go to simcse.embeddings in it")
    parser.add_argument("--model", required=True, help="folder of a BERT-family model")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=float, default=1, help="0 leaves the model as it came")
    parser.add_argument("--rate", type=float, default=3e-5, help="learning rate (SimCSE's)")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--temperature", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)

    with open(os.path.join(args.work, "problem.json"), encoding="utf-8") as f:
        texts = json.load(f)["texts"]
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModel.from_pretrained(args.model, hidden_dropout_prob=args.dropout, attention_probs_dropout_prob=args.dropout)

    def embed(some):
        batch = tokenizer(some, padding=True, truncation=True, max_length=args.tokens, return_tensors="pt")
        mask = batch["attention_mask"].unsqueeze(-1)
        return normalize((model(**batch).last_hidden_state * mask).sum(1) / mask.sum(1))

    began, used = time.time(), time.process_time()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, weight_decay=0)
    each = len(texts) // args.batch
    steps = round(args.epochs * each)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / max(1, steps))
    losses = []
    model.train()
    for step in range(steps):
        if step % each == 0:
            order = torch.randperm(len(texts)).tolist()
        lo = step % each * args.batch
        some = [texts[i] for i in order[lo : lo + args.batch]]
        scores = embed(some) @ embed(some).T / args.temperature
        loss = cross_entropy(scores, torch.arange(len(some)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    took = {"seconds": time.time() - began, "cpu": time.process_time() - used, "steps": len(losses),
        "first loss": losses[:1], "mean of the last losses": sum(losses[-10:]) / max(1, len(losses[-10:])),
        "peak MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    model.eval()
    with torch.inference_mode():
        rows = [embed(texts[lo : lo + args.batch]) for lo in range(0, len(texts), args.batch)]
    torch.cat(rows).numpy().astype("<f4").tofile(os.path.join(args.work, "simcse.embeddings"))
    print(json.dumps(took))


if __name__ == "__main__":
    main()
