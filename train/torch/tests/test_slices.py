from __future__ import annotations

import pathlib
import random
import tempfile
import unittest

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn

from giantstream_torch import Generation, Order, SlicedGradients, StreamingDataset

from . import made


class Model(nn.Module):
    """A bag of n-grams with drop-out and a head; one parameter has no gradient."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(features, 12, mode="sum", include_last_offset=True)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(12, 5)
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, indices: Tensor, offsets: Tensor, values: Tensor) -> Tensor:
        out: Tensor = self.head(self.drop(self.table(indices, offsets, per_sample_weights=values)))
        return out


def train(rank: int, ranks: int, place: str, meeting: str, out: str, slices: int) -> None:
    """Three epochs on a rank's slices; rank 0 writes the weights and the losses."""
    torch.set_num_threads(1)
    if ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    generation = Generation(place)
    dataset = StreamingDataset(generation, Order(16, seed=3), rank=rank, ranks=ranks)
    torch.manual_seed(1)
    model = Model(generation.features)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    gradients = SlicedGradients(model.parameters(), slices, rank, ranks)
    losses = []
    while dataset.epoch < 3:
        for batch in dataset:
            parts = dict(zip(gradients.own, gradients.split(batch)))

            def loss(number: int) -> Tensor:
                torch.manual_seed(dataset.epoch * 10000 + dataset.batch * 10 + number)
                x = parts[number].features()
                value: Tensor = torch.logsumexp(model(x.indices, x.offsets, x.values), 1).sum() / batch.size
                return value

            losses.append(gradients.backward(loss).item())
            optimizer.step()
    if rank == 0:
        torch.save({"weights": model.state_dict(), "losses": losses}, out)
    if ranks > 1:
        dist.destroy_process_group()


class SlicesTest(unittest.TestCase):
    def test_any_number_of_ranks_gives_the_same_weights(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            r = random.Random(5)
            place = str(made.generation(pathlib.Path(folder) / "generation", r, [[30, 25], [40, 35]]))
            results = {}
            for ranks in (1, 2, 4):
                out = f"{folder}/{ranks}.pt"
                arguments = (ranks, place, f"{folder}/meeting-{ranks}", out, 8)
                if ranks == 1:
                    train(0, *arguments)
                else:
                    spawn(train, arguments, nprocs=ranks)
                results[ranks] = torch.load(out)
            one = results[1]
            self.assertGreater(len(one["losses"]), 3)
            self.assertLess(one["losses"][-1], one["losses"][0])
            for ranks, result in results.items():
                self.assertEqual(one["losses"], result["losses"], f"{ranks} ranks")
                for name, weights in one["weights"].items():
                    self.assertTrue(torch.equal(weights, result["weights"][name]), f"{ranks} ranks: {name}")

    def test_the_gradient_is_that_of_the_whole_batch(self) -> None:
        torch.manual_seed(2)
        x, weights = torch.randn(16, 4), torch.randn(4, requires_grad=True)
        total = SlicedGradients([weights], 4).backward(lambda k: (x[4 * k : 4 * k + 4] @ weights).square().sum())
        sliced = weights.grad
        weights.grad = None
        whole = (x @ weights).square().sum()
        whole.backward()
        assert sliced is not None and weights.grad is not None
        self.assertTrue(torch.allclose(sliced, weights.grad))
        self.assertTrue(torch.allclose(total.float(), whole.detach()))

    def test_what_cannot_be_divided_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "power of two"):
            SlicedGradients([], 6)
        with self.assertRaisesRegex(ValueError, "3 ranks do not divide"):
            SlicedGradients([], 8, rank=0, ranks=3)


if __name__ == "__main__":
    unittest.main()
