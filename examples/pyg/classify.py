"""Graph neural networks of PyTorch Geometric on giantstream's embeddings.

    python classify.py STORE/generations/000001 [--split split.csv] [--methods sage,revgat+kd] [--seeds 3]

GraphSAGE, GraphSAINT, SGC, a reversible GAT with and without self-distillation, SAGN with self-label enhancement,
GAMLP with reliable label utilisation, and an MLP that sees no links. Prints the accuracy on test nodes as JSON: of each
method, and of its stages where it has several.
"""

import argparse
import json
import statistics

import torch

from graph import load, official, split
from methods import METHODS
from problem import Problem


def spread(scores):
    return {"accuracy": statistics.mean(scores), "deviation": statistics.stdev(scores) if len(scores) > 1 else 0.0}


def accuracies(name, data, parts, seed, steps, hidden):
    """Of each stage: the accuracy on test nodes, and how many predicted classes it learned from."""
    torch.manual_seed(seed)
    train, validation, test = parts
    problem = Problem.of(data.x, data.edge_index, data.y, len(data.classes), train, validation)
    return [((s.logits[test].argmax(1) == data.y[test]).float().mean().item(), s.learned_from)
            for s in METHODS[name](problem, steps, hidden)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generation")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--features", choices=["embeddings", "lsa"], default="embeddings")
    parser.add_argument("--split", help="file of lines id,part; the default is a random split, another for each seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200, help="of each stage")
    parser.add_argument("--hidden", type=int, default=128)
    args = parser.parse_args()
    if unknown := set(args.methods.split(",")) - set(METHODS):
        raise SystemExit(f"no method {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}")
    data = load(args.generation, plain=128 if args.features == "lsa" else 0)
    if len(data.classes) < 2:
        raise SystemExit("the nodes have no classes to learn")
    fixed = official(args.split, data.ids, data.y) if args.split else None
    report = {}
    for name in args.methods.split(","):
        runs = [accuracies(name, data, fixed or split(data.y, seed), seed, args.steps, args.hidden)
                for seed in range(args.seeds)]
        stages = [spread([accuracy for accuracy, _ in stage]) | {"learned_from": [n for _, n in stage]}
                  for stage in zip(*runs)]
        report[name] = {"accuracy": stages[-1]["accuracy"], "deviation": stages[-1]["deviation"]}
        if len(stages) > 1:
            report[name]["stages"] = stages
    parts = fixed or split(data.y, 0)
    commonest = data.y[parts[0]].mode().values
    report["majority"] = {"accuracy": (data.y[parts[2]] == commonest).float().mean().item(), "deviation": 0.0}
    report["nodes"] = dict(zip(("train", "validation", "test"), map(len, parts)))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
