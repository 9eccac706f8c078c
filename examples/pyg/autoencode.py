"""The paper's self-supervised competitors on plain features: GAE, VGAE, DGI, GraphZoom.

    python autoencode.py STORE/generations/000001 [--methods gae,vgae,dgi,graphzoom] [--seeds 3]

Each learns vectors of nodes from the links and from TF-IDF features (to 128 dimensions, without
the graph). A logistic regression on the vectors then tells the class, as it does on the features alone ("features") and on
giantstream's embeddings ("giant"). Prints the accuracies as JSON.
"""

import argparse
import json
import statistics

import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import GAE, VGAE, DeepGraphInfomax, GCNConv

from graph import load, official, split
from graphzoom import graphzoom


class Encoder(nn.Module):
    def __init__(self, dim, out, variational=False):
        super().__init__()
        self.first, self.mean = GCNConv(dim, 2 * out), GCNConv(2 * out, out)
        self.spread = GCNConv(2 * out, out) if variational else None

    def forward(self, x, edges):
        h = self.first(x, edges).relu()
        if self.spread is None:
            return self.mean(h, edges)
        return self.mean(h, edges), self.spread(h, edges)


def gae(data, dim, steps):
    """Kipf and Welling, 2016: the inner product of two vectors tells whether they are linked."""
    model = GAE(Encoder(data.x.shape[1], dim))
    learn(model, steps, lambda: model.recon_loss(model.encode(data.x, data.edge_index), data.edge_index))
    return lambda: model.encode(data.x, data.edge_index)


def vgae(data, dim, steps):
    model = VGAE(Encoder(data.x.shape[1], dim, variational=True))

    def loss():
        z = model.encode(data.x, data.edge_index)
        return model.recon_loss(z, data.edge_index) + model.kl_loss() / data.num_nodes

    learn(model, steps, loss)
    return lambda: model.encode(data.x, data.edge_index)  # the means, when not training


def dgi(data, dim, steps):
    """Veličković et al., 2019: tell nodes with their own features from nodes with others', given a summary of the graph."""
    model = DeepGraphInfomax(
        dim,
        encoder=Encoder(data.x.shape[1], dim),
        summary=lambda z, *_: z.mean(0).sigmoid(),
        corruption=lambda x, edges: (x[torch.randperm(len(x))], edges),
    )
    learn(model, steps, lambda: model.loss(*model(data.x, data.edge_index)))
    return lambda: model(data.x, data.edge_index)[0]


def zoom(data, dim, steps):
    vectors = graphzoom(data.x, data.edge_index, dim)
    return lambda: vectors


METHODS = {"gae": gae, "vgae": vgae, "dgi": dgi, "graphzoom": zoom}


def learn(model, steps, loss):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
    model.eval()


def probe(z, y, classes, parts, seed):
    """Accuracy of a logistic regression on test nodes."""
    torch.manual_seed(seed)
    train, validation, test = parts
    z = (z - z.mean(0)) / z.std(0).clamp(min=1e-6)
    model = nn.Linear(z.shape[1], classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-2)
    best = (-1.0, 0.0)
    for step in range(200):
        optimizer.zero_grad()
        F.cross_entropy(model(z[train]), y[train]).backward()
        optimizer.step()
        if step % 10 == 9:
            right = model(z).argmax(1) == y
            best = max(best, (right[validation].float().mean().item(), right[test].float().mean().item()))
    return best[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generation")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--split", help="file of lines id,part; the default is a random split, another for each seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--dim", type=int, default=128)
    args = parser.parse_args()
    data = load(args.generation, plain=128)
    if len(data.classes) < 2:
        raise SystemExit("the nodes have no classes to tell")
    giant = load(args.generation).x
    fixed = official(args.split, data.ids, data.y) if args.split else None
    scores = {"features": [], "giant": []}
    for seed in range(args.seeds):
        parts = fixed or split(data.y, seed)
        scores["features"].append(probe(data.x, data.y, len(data.classes), parts, seed))
        scores["giant"].append(probe(giant, data.y, len(data.classes), parts, seed))
        for name in args.methods.split(","):
            torch.manual_seed(seed)
            vectors = METHODS[name](data, args.dim, args.steps)
            with torch.no_grad():
                z = vectors()
            scores.setdefault(name, []).append(probe(z, data.y, len(data.classes), parts, seed))
    print(json.dumps({name: {"accuracy": statistics.mean(s), "deviation": statistics.stdev(s) if len(s) > 1 else 0.0}
                      for name, s in scores.items()}, indent=1))


if __name__ == "__main__":
    main()
