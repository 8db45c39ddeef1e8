#!/usr/bin/env python3
"""Writes a small dataset in MNIST's format into idx/, by the format's description and Python's gzip."""
import gzip
import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent / "idx"


def pixels(image):
    return bytes((image * 31 + row * 7 + column * column) % 256 for row in range(28) for column in range(28))


def write(name, content):
    with open(FOLDER / (name + ".gz"), "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(content)


def split(prefix, images):
    write(prefix + "-images-idx3-ubyte",
          struct.pack(">IIII", 0x803, len(images), 28, 28) + b"".join(pixels(i) for i in images))
    write(prefix + "-labels-idx1-ubyte",
          struct.pack(">II", 0x801, len(images)) + bytes(i * 3 % 10 for i in images))


FOLDER.mkdir(exist_ok=True)
split("train", range(12))
split("t10k", range(12, 17))
