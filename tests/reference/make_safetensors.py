#!/usr/bin/python3
"""Writes golden.safetensors from the format's description alone, the reference of safetensors_test."""
import json
import pathlib
import struct

tensors = {
    "layer.weight": ([2, 3], [0.5, -1.0, 2.0, 3.25, -4.0, 1e-3]),
    "empty": ([0, 4], []),
    "scalar": ([], [7.0]),
    "ünïcode": ([1], [-0.0]),
}
header, body = {"__metadata__": {"format": "pt", "step": "12"}}, b""
for name, (shape, values) in reversed(tensors.items()):  # the header's order need not be the file's
    data = struct.pack(f"<{len(values)}f", *values)
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
    body += data
text = json.dumps(dict(sorted(header.items())), ensure_ascii=False).encode()
text += b" " * (-len(text) % 8)
path = pathlib.Path(__file__).parent / "golden.safetensors"
path.write_bytes(struct.pack("<Q", len(text)) + text + body)
