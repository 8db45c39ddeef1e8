#!/usr/bin/python3
"""Writes golden.safetensors from the format's description alone, the reference of safetensors_test."""
import json
import pathlib
import struct

inf = float("inf")
tensors = {
    "layer.weight": ("F32", [2, 3], [0.5, -1.0, 2.0, 3.25, -4.0, 1e-3]),
    "empty": ("F32", [0, 4], []),
    "scalar": ("F32", [], [7.0]),
    "ünïcode": ("F32", [1], [-0.0]),
    "double": ("F64", [2], [0.1, -1e300]),
    "half": ("F16", [7], [1.0, -2.5, 65504.0, 2.0**-24, -(2.0**-14), inf, -0.0]),
    "brain": ("BF16", [4], [1.0, -2.5, 2.0**-126, -inf]),
    "count": ("I64", [], [12]),
}


def packed(dtype, values):
    if dtype == "BF16":  # the upper half of a 32-bit float
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack(f"<{len(values)}{dict(F32='f', F64='d', F16='e', I64='q')[dtype]}", *values)


header, body = {"__metadata__": {"format": "pt", "step": "12"}}, b""
for name, (dtype, shape, values) in reversed(tensors.items()):  # the header's order need not be the file's
    data = packed(dtype, values)
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
    body += data
text = json.dumps(dict(sorted(header.items())), ensure_ascii=False).encode()
text += b" " * (-len(text) % 8)
path = pathlib.Path(__file__).parent / "golden.safetensors"
path.write_bytes(struct.pack("<Q", len(text)) + text + body)
