#!/usr/bin/python3
"""Writes digits_scaled.json: three digits scaled to 28x28 by PyTorch, the reference of digits_test."""
import gzip
import json
import pathlib

import torch

here = pathlib.Path(__file__).parent
rows = [list(map(int, line.split(",")))
        for line in gzip.open(here.parent.parent / "data/digits/digits.csv.gz", "rt")]


def scaled(row):
    image = torch.tensor(row[:64], dtype=torch.float64).view(1, 1, 8, 8)
    image = torch.nn.functional.interpolate(image, size=(28, 28), mode="bilinear", align_corners=False)
    return (image * 255 / 16).flatten().tolist()


# Samples 0 and 5 are the first and the fifth of the training split; 9 is the second of the test split.
out = {str(i): {"label": rows[i][64], "pixels": [round(p, 3) for p in scaled(rows[i])]} for i in (0, 5, 9)}
(here / "digits_scaled.json").write_text(json.dumps(out, separators=(",", ":")).replace("},", "},\n") + "\n")
