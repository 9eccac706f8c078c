"""Graph neural networks of PyTorch Geometric on giantstream's embeddings.

    python classify.py STORE/generations/000001 [--models sage,saint,sgc,revgat] [--seeds 3] [--features lsa]

GraphSAGE on sampled neighbourhoods, GraphSAINT on sampled subgraphs, SGC, and a reversible GAT, whose
memory does not grow with its depth. Prints the accuracy on test nodes per model, as JSON. The samplers are a few lines of
PyTorch, so that no compiled extension (pyg-lib, torch-sparse) is needed.
"""

import argparse
import json
import statistics

import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GroupAddRev, MessagePassing, SAGEConv, SGConv

from graph import load, split


class MLP(nn.Module):
    """Sees no links: what the others are compared with."""

    def __init__(self, dim, classes, hidden):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Dropout(0.5), nn.Linear(hidden, classes))

    def forward(self, x, edges, weight=None):
        return self.layers(x)


class SAGE(nn.Module):
    def __init__(self, dim, classes, hidden):
        super().__init__()
        self.one, self.two = SAGEConv(dim, hidden), SAGEConv(hidden, classes)

    def forward(self, x, edges, weight=None):
        return self.two(F.dropout(self.one(x, edges).relu(), 0.5, self.training), edges)


class Weighted(MessagePassing):
    """SAGE with a sum over weighted links instead of a mean, which GraphSAINT's normalisation needs."""

    def __init__(self, dim, out):
        super().__init__(aggr="add")
        self.near, self.own = nn.Linear(dim, out), nn.Linear(dim, out, bias=False)

    def forward(self, x, edges, weight):
        return self.near(self.propagate(edges, x=x, weight=weight)) + self.own(x)

    def message(self, x_j, weight):
        return weight.view(-1, 1) * x_j


class SAINT(nn.Module):
    def __init__(self, dim, classes, hidden):
        super().__init__()
        self.one, self.two = Weighted(dim, hidden), Weighted(hidden, classes)

    def forward(self, x, edges, weight):
        return self.two(F.dropout(self.one(x, edges, weight).relu(), 0.5, self.training), edges, weight)


class SGC(nn.Module):
    def __init__(self, dim, classes, hidden):
        super().__init__()
        self.conv = SGConv(dim, classes, K=2)

    def forward(self, x, edges, weight=None):
        return self.conv(x, edges)


class Step(nn.Module):
    """What a reversible block adds to a group of its channels."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.conv = nn.LayerNorm(width), GATConv(width, width)

    def forward(self, x, edges):
        return self.conv(self.norm(x).relu(), edges)


class RevGAT(nn.Module):
    """Li et al., Training Graph Neural Networks with 1000 Layers, 2021: blocks whose input is computed again from their output."""

    def __init__(self, dim, classes, hidden, depth=4, groups=2):
        super().__init__()
        self.first, self.last = nn.Linear(dim, hidden), nn.Linear(hidden, classes)
        self.blocks = nn.ModuleList(GroupAddRev(Step(hidden // groups), num_groups=groups) for _ in range(depth))

    def forward(self, x, edges, weight=None):
        x = F.dropout(self.first(x), 0.5, self.training)
        for block in self.blocks:
            x = block(x, edges)
        return self.last(x.relu())


MODELS = {"mlp": MLP, "sage": SAGE, "saint": SAINT, "sgc": SGC, "revgat": RevGAT}


class Neighbours:
    """The links by their far end, to draw from."""

    def __init__(self, edges, nodes):
        order = edges[1].argsort(stable=True)
        self.source = edges[0][order]
        self.degree = torch.bincount(edges[1], minlength=nodes)
        self.start = self.degree.cumsum(0) - self.degree

    def draw(self, nodes, fanout):
        """Links (2×k) into the nodes, fanout for each that has a neighbour, with replacement."""
        nodes = nodes[self.degree[nodes] > 0]
        pick = (torch.rand(len(nodes), fanout) * self.degree[nodes, None]).long() + self.start[nodes, None]
        return torch.stack([self.source[pick].flatten(), nodes.repeat_interleave(fanout)])


def relabel(nodes, edges, n):
    """Edges in positions of nodes; those that lead elsewhere are left out."""
    place = torch.full((n,), -1)
    place[nodes] = torch.arange(len(nodes))
    edges = place[edges]
    return edges, (edges >= 0).all(0)


def neighbourhoods(data, train, batch=256, fanout=(10, 10)):
    """GraphSAGE (Hamilton et al., 2017): minibatches of nodes with neighbours drawn around them."""
    near = Neighbours(data.edge_index, data.num_nodes)
    while True:
        for seeds in train[torch.randperm(len(train))].split(batch):
            front, found = seeds, []
            for k in fanout:
                found.append(near.draw(front, k))
                front = torch.cat([front, found[-1][0]]).unique()
            edges = torch.cat(found, 1).unique(dim=1)
            local, _ = relabel(front, edges, data.num_nodes)
            at, _ = relabel(front, seeds, data.num_nodes)
            yield data.x[front], local, None, at, data.y[seeds], None


def subgraphs(data, train, roots=None, length=2, counted=50):
    """GraphSAINT (Zeng et al., 2020) with random walks: subgraphs whose loss and links are weighted by how
    often a node and a link are drawn, so that both are right on average."""
    n, near = data.num_nodes, Neighbours(data.edge_index, data.num_nodes)
    roots = roots or max(n // 8, 32)

    def walk():
        at = torch.randint(n, (roots,))
        seen = [at]
        for _ in range(length):
            links = near.draw(at.unique(), 1)
            at = links[0]
            seen.append(at)
        nodes = torch.cat(seen).unique()
        edges, inside = relabel(nodes, data.edge_index, n)
        return nodes, edges[:, inside], inside

    node_count, link_count = torch.zeros(n), torch.zeros(data.num_edges)
    for _ in range(counted):
        nodes, _, inside = walk()
        node_count[nodes] += 1
        link_count[inside] += 1
    degree = torch.bincount(data.edge_index[1], minlength=n).clamp(min=1)
    # A link drawn given its far end, over the degree: the mean over neighbours, without bias.
    link_weight = node_count[data.edge_index[1]] / link_count.clamp(min=1) / degree[data.edge_index[1]]
    loss_weight = counted / node_count.clamp(min=1)
    loss_weight /= loss_weight.mean()
    trains = torch.zeros(n, dtype=torch.bool)
    trains[train] = True
    while True:
        nodes, edges, inside = walk()
        at = torch.nonzero(trains[nodes]).flatten()
        if len(at):
            yield data.x[nodes], edges, link_weight[inside], at, data.y[nodes[at]], loss_weight[nodes[at]]


def whole(data, train):
    while True:
        yield data.x, data.edge_index, None, train, data.y[train], None


BATCHES = {"sage": neighbourhoods, "saint": subgraphs}


def accuracy(name, data, seed, steps, hidden):
    """On test nodes, with the weights that were best on the validation nodes."""
    torch.manual_seed(seed)
    train, validation, test = split(data.y, seed)
    model = MODELS[name](data.x.shape[1], len(data.classes), hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    batches = BATCHES.get(name, whole)(data, train)
    degree = torch.bincount(data.edge_index[1], minlength=data.num_nodes).clamp(min=1)
    mean = 1 / degree[data.edge_index[1]]  # link weights of the whole graph
    best = (-1.0, 0.0)
    for step in range(steps):
        x, edges, weight, at, y, of_loss = next(batches)
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, edges, weight)[at], y, reduction="none")
        (loss if of_loss is None else loss * of_loss).mean().backward()
        optimizer.step()
        if step % 10 == 9 or step == steps - 1:
            model.eval()
            with torch.no_grad():
                right = model(data.x, data.edge_index, mean).argmax(1) == data.y
            best = max(best, (right[validation].float().mean().item(), right[test].float().mean().item()))
    return best[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("generation")
    parser.add_argument("--models", default="mlp,sage,saint,sgc,revgat")
    parser.add_argument("--features", choices=["embeddings", "lsa"], default="embeddings")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--hidden", type=int, default=128)
    args = parser.parse_args()
    data = load(args.generation, plain=128 if args.features == "lsa" else 0)
    if len(data.classes) < 2:
        raise SystemExit("the nodes have no classes to learn")
    report = {}
    for name in args.models.split(","):
        scores = [accuracy(name, data, seed, args.steps, args.hidden) for seed in range(args.seeds)]
        report[name] = {"accuracy": statistics.mean(scores), "deviation": statistics.stdev(scores) if len(scores) > 1 else 0.0}
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
