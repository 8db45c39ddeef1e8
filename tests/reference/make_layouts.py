#!/usr/bin/python3
"""Writes layouts.json: names and shapes of torchvision's parameters, the reference of layouts_test."""
import json
import pathlib

import torchvision

networks = {}
for name in ("resnet18", "resnet50", "vgg16"):
    model = getattr(torchvision.models, name)(weights=None)
    networks[name] = [[n, list(p.shape)] for n, p in model.named_parameters()]

lines = ",\n".join(
    f'"{name}": [\n' + ",\n".join(json.dumps(t, separators=(",", ":")) for t in tensors) + "]"
    for name, tensors in networks.items())
(pathlib.Path(__file__).parent / "layouts.json").write_text("{" + lines + "}\n")
