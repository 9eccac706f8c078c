"""Trains the three heads with PyTorch Geometric on the data that a test wrote.

    python3 pyg.py DIR

DIR holds task.json (nodes, dim, classes, splits, options), vectors.f32,
labels.i32 and edges.i32 (two rows: sources, destinations). Prints per head and
split the accuracy and the macro F1 on the test nodes, as JSON.
"""
import json
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import SAGEConv, SGConv

torch.set_num_threads(1)
folder = sys.argv[1]
task = json.load(open(folder + "/task.json"))
n, dim, classes, o = task["nodes"], task["dim"], task["classes"], task["options"]


def read(name, kind):
    return torch.from_numpy(np.fromfile(f"{folder}/{name}", dtype=kind))


vectors = read("vectors.f32", "<f4").reshape(n, dim)
labels = read("labels.i32", "<i4").long()
edges = read("edges.i32", "<i4").long().reshape(2, -1)


def standardized(x):
    scale = x.std(dim=0, unbiased=False)
    return (x - x.mean(dim=0)) / torch.where(scale > 0, scale, torch.ones_like(scale))


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = standardized(vectors)
        self.hidden, self.out = torch.nn.Linear(dim, o["hidden"]), torch.nn.Linear(o["hidden"], classes)

    def forward(self):
        h = F.dropout(self.hidden(self.x).relu(), o["dropout"], self.training)
        return self.out(h)


class SGC(torch.nn.Module):
    def __init__(self):
        super().__init__()
        smooth = SGConv(dim, dim, K=o["hops"], bias=False)
        with torch.no_grad():
            smooth.lin.weight.copy_(torch.eye(dim))
            self.x = standardized(smooth(vectors, edges))
        self.out = torch.nn.Linear(dim, classes)

    def forward(self):
        return self.out(self.x)


class SAGE(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = standardized(vectors)
        self.hidden, self.out = SAGEConv(dim, o["hidden"]), SAGEConv(o["hidden"], classes)

    def forward(self):
        h = F.dropout(self.hidden(self.x, edges).relu(), o["dropout"], self.training)
        return self.out(h, edges)


def train(head, rate, split, seed):
    torch.manual_seed(seed)
    model = head()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=o["decay"])
    part = {k: torch.tensor(split[k]) for k in split}
    best, since, prediction = (-1.0, 0.0), 0, None
    for _ in range(o["epochs"]):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model()[part["Train"]], labels[part["Train"]]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            scores = model()
        v = part["Validation"]
        score = ((scores[v].argmax(1) == labels[v]).double().mean().item(), -F.cross_entropy(scores[v], labels[v]).item())
        since += 1
        if score > best:
            best, since, prediction = score, 0, scores.argmax(1)
        if since >= o["patience"]:
            break
    p, y = prediction[part["Test"]], labels[part["Test"]]
    f1 = []
    for c in range(classes):
        if (y == c).any():
            f1.append(2 * ((p == c) & (y == c)).sum().item() / ((p == c).sum() + (y == c).sum()).item())
    return {"accuracy": (p == y).double().mean().item(), "macro_f1": sum(f1) / len(f1)}


print(json.dumps({
    name: [train(head, o["rates"][name], s, k) for k, s in enumerate(task["splits"])]
    for name, head in [("mlp", MLP), ("sgc", SGC), ("graphsage", SAGE)]
}))
