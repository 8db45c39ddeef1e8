#!/usr/bin/env python3
"""Writes the TorchScript modules of the tests, and weights that PyTorch trains: modules/. Needs PyTorch; the tests do not."""

import json
import pathlib
import warnings
import zipfile

import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent / "modules"


class Small(nn.Module):
    """Classifies digits by their means in 7x7 fields; has buffers."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(16)
        self.out = nn.Linear(16, 10)

    def forward(self, images):
        return self.out(self.norm(nn.functional.avg_pool2d(images, 7).flatten(1)))


class Regression(nn.Module):
    """Has a loss of its own."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 1)

    def forward(self, x):
        return self.out(x)

    @torch.jit.export
    def loss(self, x, y):
        return (self.forward(x) - y).abs().mean()


class Tied(nn.Module):
    """Has a weight and a layer with two names each."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.decoder = nn.Linear(3, 3)
        self.decoder.weight = self.encoder.weight
        self.last = self.norm

    def forward(self, x):
        hidden = torch.relu(self.norm(self.encoder(x)))
        return self.last(self.decoder(hidden)).sum(1, keepdim=True)


class Raising(nn.Module):
    """Fails in training as the first number of its input says."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 1)

    def check(self, x: int):
        assert x != 5, "not five"

    def forward(self, x):
        if self.training:
            kind = int(x[0, 0])
            if kind == 1:
                raise ValueError("my own problem")
            if kind == 2:
                raise ValueError("first line\n  second line\n")
            if kind == 3:
                raise RuntimeError("RuntimeError: of mine")
            if kind == 4:
                raise NotImplementedError(" ".join(["long"] * 200))
            self.check(kind)
            if kind == 6:
                return self.out(x[:, :2])
        return self.out(x)


class Endless(nn.Module):
    """Computes until it is killed: always, or in training only. Its warning on standard error says when."""

    def __init__(self, always: bool):
        super().__init__()
        self.out = nn.Linear(3, 1)
        self.always = always
        self.rounds = 1

    def forward(self, x):
        if self.always or self.training:
            warnings.warn("computing")
        while self.always or self.training:
            self.rounds = self.rounds % 1000 + 1
        return self.out(x)


class Bags(nn.Module):
    """Has an embedding with sparse gradients."""

    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(9, 4, mode="sum", sparse=True)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        return self.out(self.bag(x.long()))


def state_of(module):
    return {name: tensor.flatten().tolist() for name, tensor in module.state_dict().items()}


def train(module, steps=3, momentum=0.0):
    """Trains on the rows of ScriptedTaskTest::numbers(): all training samples in each step."""
    rows = [i for i in range(20) if i % 5 != 4]  # the others are for testing
    x = torch.tensor([[i % 3, i % 5, i % 7] for i in rows], dtype=torch.float)
    y = torch.tensor([[i % 3 + 2 * (i % 5) - i % 7] for i in rows], dtype=torch.float)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=momentum)
    states = [state_of(module)]
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(module(x), y).backward()
        optimizer.step()
    states.append(state_of(module))
    return dict(zip(("initial", "trained"), states))


torch.manual_seed(1)
torch.jit.script(Small()).save(FOLDER / "small.pt")
torch.jit.script(Small()).save(FOLDER / "other.pt")
torch.jit.script(Regression()).save(FOLDER / "regression.pt")
torch.jit.trace(Small().eval(), torch.zeros(2, 1, 28, 28)).save(FOLDER / "traced.pt")
tied = Tied()
torch.jit.script(tied).save(FOLDER / "tied.pt")
(FOLDER / "tied.json").write_text(json.dumps(train(tied, momentum=0.9)) + "\n")
bags = Bags()
torch.jit.script(bags).save(FOLDER / "bags.pt")
(FOLDER / "bags.json").write_text(json.dumps(train(bags)) + "\n")
torch.jit.script(Raising()).save(FOLDER / "raising.pt")
torch.jit.script(Endless(always=True)).save(FOLDER / "endless.pt")
torch.jit.script(Endless(always=False)).save(FOLDER / "endless_training.pt")


def rewrite(source, target, old=b"", new=b""):
    """Copies a module without its debug information, which has paths, and replaces text in its code."""
    with zipfile.ZipFile(source) as known:
        files = {name: known.read(name) for name in known.namelist() if not name.endswith(".debug_pkl")}
    with zipfile.ZipFile(target, "w") as changed:
        for name, data in files.items():
            changed.writestr(zipfile.ZipInfo(name), data.replace(old, new) if old else data)


for file in FOLDER.glob("*.pt"):
    rewrite(file, file)
# A module that needs an operator which does not exist.
rewrite(FOLDER / "regression.pt", FOLDER / "unknown_operator.pt", b"torch.abs", b"torch.no_such_operator")
