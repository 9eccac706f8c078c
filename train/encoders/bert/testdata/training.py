#!/usr/bin/env python3
"""Writes the golden gradients and AdamW steps of this folder with PyTorch. Needs what golden.py has written.

    pip install torch transformers safetensors
    python training.py [model directory, length, learning rate, output]
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import BertModel, BertTokenizerFast

here = pathlib.Path(__file__).parent
folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "tiny"
length = int(sys.argv[2]) if len(sys.argv) > 2 else 40
rate = float(sys.argv[3]) if len(sys.argv) > 3 else 1e-2
path = sys.argv[4] if len(sys.argv) > 4 else here / "training.safetensors"

texts = json.loads((here / "texts.json").read_text())
tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True)
batch = tokenizer(texts, padding=True, truncation=True, max_length=length, return_tensors="pt")
mask = batch["attention_mask"].unsqueeze(-1)

tensors = {}


def start():
    return BertModel.from_pretrained(folder).eval()  # eval: no dropout


def outcome(model, pooling):
    out = model(**batch)
    if pooling == "cls":
        return out.pooler_output
    return (out.last_hidden_state * mask).sum(1) / mask.sum(1)


torch.manual_seed(7)
slope = torch.randn(len(texts), start().config.hidden_size)
tensors["slope"] = slope

# One backward pass of the loss that has this slope.
model = start()
(outcome(model, "cls") * slope).sum().backward()
for name, p in model.named_parameters():
    tensors["gradient." + name] = p.grad.contiguous()

# Three steps, of gradients that are clipped to 1 and one that is not.
model = start()
plain = [p for n, p in model.named_parameters() if n.endswith("bias") or "LayerNorm" in n]
decayed = [p for n, p in model.named_parameters() if not (n.endswith("bias") or "LayerNorm" in n)]
optimizer = torch.optim.AdamW(
    [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], betas=(0.9, 0.999), eps=1e-8)
norms = []
steps = [(rate, 1.0), (2 * rate, 1e-3), (rate, 0.5)]
for rate, scale in steps:
    optimizer.zero_grad()
    (outcome(model, "mean") * slope * scale).sum().backward()
    norms.append(torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.grad is not None], 1.0))
    for g in optimizer.param_groups:
        g["lr"] = rate
    optimizer.step()
tensors["norms"] = torch.stack(norms).to(torch.float32)
tensors["steps"] = torch.tensor(steps, dtype=torch.float32)  # learning rate, factor of the slope
for name, p in model.named_parameters():
    tensors["trained." + name] = p.detach().contiguous()
save_file(tensors, path)
