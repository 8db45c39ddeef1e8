#!/usr/bin/python3
"""Writes layouts.json, the reference of layouts_test: for each network as PyTorch has it the number of tensors
and of elements of parameters and of buffers (num_batches_tracked left out), a digest of all names and shapes,
the smallest square image that passes through it, and the smallest that it can be trained on alone."""
import json
import pathlib

import torch

import networks


def digest(tensors):
    """FNV-1a, 64 bits, of lines such as "conv1.weight 64x3x7x7"; a scalar has no shape."""
    value = 0xCBF29CE484222325
    for name, tensor in tensors:
        for byte in f"{name} {'x'.join(map(str, tensor.shape))}\n".encode():
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def passes(model, side, batch, channels):
    try:
        with torch.no_grad():
            model(torch.zeros(batch, channels, side, side))
        return True
    except (RuntimeError, ValueError):
        return False


def least_side(model, batch, channels, low=1, high=400):
    """None where not even the largest passes."""
    if not passes(model, high, batch, channels):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(model, middle, batch, channels) else (middle + 1, high)
    return low


out = {}
for name in networks.NAMES:
    model = networks.build(name, networks.default_classes(name)).train()
    parameters, buffers = list(model.named_parameters()), list(model.named_buffers())
    entry = {"tensors": [len(parameters), len(buffers)],
             "parameters": sum(p.numel() for _, p in parameters),
             "buffers": sum(b.numel() for n, b in buffers if not n.endswith("num_batches_tracked")),
             "digests": [digest(parameters), digest(buffers)]}
    if name not in ("lenet", "mlp"):  # they take one size
        entry["least_side"] = least_side(model, 2, 3)
        entry["alone_side"] = least_side(model, 1, 3)
    out[name] = entry
    print(name, entry, flush=True)
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in out.items())
(pathlib.Path(__file__).parent / "layouts.json").write_text("{" + lines + "}\n")
