#!/usr/bin/python3
"""Writes networks/<name>.json, the reference of parity_test: what PyTorch computes in 64 bits, with weights, buffers
and images from one formula. Arguments: names of networks; none for all."""
import json
import pathlib
import sys

import numpy
import torch
from torch.nn import functional

import networks

BATCH, CLASSES = 2, 5


def drawn(tensor, count):
    """Numbers in [-1, 1) that look random, a function of the tensor's index and the element's alone."""
    z = numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(tensor << 32)
    z = z * numpy.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> numpy.uint64(32))) * numpy.uint64(0xD6E8FEB86659FD93)
    z = z ^ (z >> numpy.uint64(32))
    return torch.from_numpy((z >> numpy.uint64(40)).astype(numpy.float64) / 2.0**23 - 1)


def fill(model, norm_scale):
    """Weights such that activations keep their size; tensors are counted, parameters first, then buffers."""
    for i, (name, tensor) in enumerate([*model.named_parameters(), *model.named_buffers()]):
        values = drawn(i, tensor.numel()).reshape(tensor.shape)
        if name.endswith("num_batches_tracked"):
            values = torch.zeros_like(tensor)
        elif tensor.dim() > 1:
            values = values * (6 / tensor[0].numel()) ** 0.5
        elif name.endswith("running_var"):
            values = 1 + 0.5 * values
        elif name.endswith("weight"):
            values = norm_scale * (1 + 0.2 * values)
        else:
            values = 0.1 * values
        tensor.data.copy_(values)


def shape_of(name):
    """Small images, of height and width that differ, that leave more than one pixel to every batch norm."""
    if name in ("lenet", "mlp"):
        return 1, 28, 28
    if name == "inception-v3":
        return 3, 299, 299
    for prefix, height, width in (("inception", 107, 115), ("alexnet", 63, 71), ("densenet", 61, 64), ("googlenet", 40, 48),
                                  ("mobilenet", 36, 44), ("vgg", 32, 40)):
        if name.startswith(prefix):
            return 3, height, width
    return (3, 10, 12) if networks.default_classes(name) == 10 else (3, 36, 44)


def loss_of(name, output, labels):
    def entropy(logits):
        return functional.cross_entropy(logits, labels)

    if isinstance(output, torch.Tensor):
        return output, entropy(output)
    if name == "googlenet":
        return output.logits, entropy(output.logits) + 0.3 * (entropy(output.aux_logits1) + entropy(output.aux_logits2))
    return output.logits, entropy(output.logits) + 0.4 * entropy(output.aux_logits)


def digits(values):
    return [float(f"{v:.12g}") for v in values]


def reference(name):
    channels, height, width = shape_of(name)
    norm_scale = 0.5 if name.startswith("resnet") else 0.8
    model = networks.build(name, CLASSES, dropout=0.0).double()
    images = drawn(1 << 20, BATCH * channels * height * width).reshape(BATCH, channels, height, width)
    labels = (torch.arange(BATCH) * 3 + 1) % CLASSES
    out = {"batch": BATCH, "classes": CLASSES, "image": [channels, height, width], "norm_scale": norm_scale}
    for mode in ("train", "eval"):
        fill(model, norm_scale)
        model.train(mode == "train").zero_grad()
        logits, loss = loss_of(name, model(images), labels)
        out[mode] = {"loss": digits([loss.item()])[0], "logits": digits(logits.flatten().tolist())}
        # To save time: networks without buffers do the same in both modes, and inception-v3 does what
        # inception-v3-noaux does, on large images.
        if mode == "eval" and (name == "inception-v3" or not list(model.buffers())):
            continue
        loss.backward()
        gradients = [p.grad for p in model.parameters()]
        out[mode]["gradients"] = digits(0.0 if g is None else g.norm().item() for g in gradients)
        if mode == "train":
            out[mode]["buffers"] = digits(b.double().norm().item() for b in model.buffers())
    return out


folder = pathlib.Path(__file__).parent / "networks"
folder.mkdir(exist_ok=True)
for name in sys.argv[1:] or networks.NAMES:
    text = json.dumps(reference(name), separators=(",", ":"))
    (folder / f"{name}.json").write_text(text.replace('],"', '],\n"').replace('},"', '},\n"') + "\n")
    print(name, len(text), flush=True)
