"""Tests of the methods on a graph of four communities, whose features tell little and whose links tell much."""

import tempfile
import unittest
from pathlib import Path

import torch

from graph import official, split
from graphzoom import coarsen, fuse, graphzoom, levels_of, merge
from hops import hops, last_residual, one_hot
from methods import METHODS, distilled, enhanced, reliable, sure
from problem import Problem

NODES, CLASSES = 400, 4


def communities(seed=1, noise=3.0):
    """Nine of ten links stay in the community; the features are its centre and noise."""
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(NODES) % CLASSES
    centres = torch.randn(CLASSES, 16, generator=g)
    x = centres[y] + noise * torch.randn(NODES, 16, generator=g)
    ends = torch.randint(NODES, (2, NODES * 8), generator=g)
    keep = (y[ends[0]] == y[ends[1]]) | (torch.rand(ends.shape[1], generator=g) < 0.04)
    ends = ends[:, keep & (ends[0] != ends[1])]
    return x, torch.cat([ends, ends.flip(0)], 1).unique(dim=1), y


def problem(seed=1, **how):
    x, edges, y = communities(seed, **how)
    train, validation, test = split(y, seed)
    return Problem.of(x, edges, y, CLASSES, train, validation), y, test


def accuracy(logits, y, at):
    return (logits[at].argmax(1) == y[at]).float().mean().item()


class Methods(unittest.TestCase):
    def test_links_help(self):
        """All are better than chance, which here is the commonest class, and those that see links than the MLP."""
        p, y, test = problem()
        got = {}
        for name, method in METHODS.items():
            torch.manual_seed(1)
            got[name] = accuracy(method(p, 40, 32)[-1].logits, y, test)
        self.assertGreater(got["mlp"], 1 / CLASSES + 0.05, got)
        for name in set(METHODS) - {"mlp"}:
            self.assertGreater(got[name], got["mlp"] + 0.05, got)

    def test_labels_of_test_nodes_change_nothing(self):
        p, y, test = problem()
        other = y.clone()
        other[test] = other[test][torch.randperm(len(test))]
        q = Problem.of(p.x, p.edges, other, CLASSES, p.train, p.validation)
        for name, method in METHODS.items():
            torch.manual_seed(2)
            a = method(p, 10, 8)
            torch.manual_seed(2)
            b = method(q, 10, 8)
            for i, (one, two) in enumerate(zip(a, b)):
                self.assertTrue(torch.equal(one.logits, two.logits), f"{name}, stage {i}")

    def test_a_student_learns_from_its_teacher_alone(self):
        p, y, test = problem()
        torch.manual_seed(3)
        teacher, student = distilled(p, 40, 32, alpha=1.0)
        same = (teacher.logits.argmax(1) == student.logits.argmax(1)).float().mean().item()
        self.assertGreater(same, 0.8)
        self.assertGreater(accuracy(student.logits, y, test), 0.5)

    def test_stages_learn_from_what_is_sure(self):
        for method, stages in ((enhanced, 3), (reliable, 4)):
            p, y, test = problem(noise=1.5)
            torch.manual_seed(4)
            got = method(p, 40, 32, threshold=0.8)
            self.assertEqual(len(got), stages)
            self.assertEqual(got[0].learned_from, 0)
            for before, stage in zip(got, got[1:]):
                at = sure(p, before.logits.softmax(1), 0.8)
                self.assertEqual(stage.learned_from, len(at))
                self.assertGreater(len(at), 0)
                self.assertFalse(set(at.tolist()) & set(p.train.tolist()))
            # With a threshold that nothing passes, all stages learn from labels alone.
            self.assertEqual([s.learned_from for s in method(p, 5, 8, threshold=1.0)], [0] * stages)


class Hops(unittest.TestCase):
    def test_means(self):
        p, _, _ = problem()
        alone = Problem(p.x, p.edges[:, (p.edges != 7).all(0)], p.y, CLASSES, p.train, p.validation)
        for h in hops(alone, torch.ones(NODES, 2), 3)[1:]:
            linked = torch.bincount(alone.edges[1], minlength=NODES) > 0
            self.assertTrue(torch.allclose(h[linked], torch.ones(1)), "the mean of a constant")
            self.assertEqual(h[7].abs().sum().item(), 0)

    def test_labels_of_training_nodes_are_not_overwritten(self):
        p, y, _ = problem()
        wrong = torch.nn.functional.one_hot((y + 1) % CLASSES, CLASSES).float()
        labels = one_hot(p, torch.arange(NODES), wrong)
        self.assertTrue(torch.equal(labels[p.train].argmax(1), y[p.train]))
        self.assertTrue(torch.equal(one_hot(p, torch.empty(0, dtype=torch.long), wrong).sum(1).nonzero().flatten(),
                                    p.train.sort().values))

    def test_the_own_label_stays_out(self):
        steps = [torch.full((3, 2), 9.0)] + [torch.full((3, 2), float(k)) for k in range(1, 5)]
        other = [torch.zeros(3, 2), *steps[1:]]
        self.assertTrue(torch.equal(last_residual(steps), last_residual(other)))


class GraphZoom(unittest.TestCase):
    def test_levels(self):
        for seed in range(5):
            x, edges, _ = communities(seed)
            torch.manual_seed(seed)
            graphs, maps = levels_of(fuse(x, edges, 5), 3, 16)
            self.assertEqual(len(maps), 3)
            for a, b, into in zip(graphs, graphs[1:], maps):
                sizes = torch.bincount(into)
                self.assertEqual(sizes.min().item(), 1 if (sizes == 1).any() else 2)
                self.assertLessEqual(sizes.max().item(), 2)
                self.assertEqual(len(sizes), b.shape[0])
                self.assertLess(b.shape[0], 0.75 * a.shape[0])
                self.assertAlmostEqual(a.values().sum().item() / b.values().sum().item(), 1, places=4)

    def test_merged_nodes_belong_together(self):
        x, edges, y = communities()
        torch.manual_seed(1)
        into = merge(fuse(x, edges, 5))
        count = int(into.max()) + 1
        classes = torch.zeros(count, CLASSES).index_put_((into, y), torch.ones(NODES), accumulate=True)
        pairs = classes[classes.sum(1) == 2]
        # Of pairs drawn at random, one in four has one community.
        self.assertGreater((pairs.max(1).values == 2).float().mean().item(), 0.5)
        self.assertEqual(coarsen(fuse(x, edges, 5), into).shape[0], count)

    def test_vectors_tell_communities(self):
        x, edges, y = communities()
        torch.manual_seed(1)
        z = torch.nn.functional.normalize(graphzoom(x, edges, 16))
        self.assertEqual(tuple(z.shape), (NODES, 16))
        near = (z @ z.T - 2 * torch.eye(NODES)).topk(5).indices
        self.assertGreater((y[near] == y[:, None]).float().mean().item(), 0.7)


class Splits(unittest.TestCase):
    def read(self, text, ids=("a", "b", "c", "d", "e"), y=(0, 1, -1, 1, 0)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "split.csv")
            path.write_text(text)
            return [part.tolist() for part in official(str(path), ids, torch.tensor(y))]

    def test_official(self):
        want = [[1], [3], [0, 4]]
        self.assertEqual(self.read("id,split\nb,train\nd,valid\ne,test\na,test\nz,train\nc,train\n"), want)
        self.assertEqual(self.read("b,train\nd,valid\na,test\ne,test\n"), want)
        for wrong, says in (("b,train\nb,valid\n", "line 2: node b for the second time"),
                            ("b,train\nd,dev\n", "line 2: want id,part"), ("b\n", "line 1: want id,part"),
                            ("b,train\nd,valid\n", "no nodes with a class in test")):
            with self.assertRaisesRegex(SystemExit, says):
                self.read(wrong)


if __name__ == "__main__":
    unittest.main()
