#!/usr/bin/env python3
"""Writes arrays/*.npy and *.npz with NumPy: the files that tests/data/array_file_test.cpp reads.

Element k of an array is 7 k mod 23; of a signed type 5 less; of a float type that, divided by 4.
"""

import pathlib

import numpy

FOLDER = pathlib.Path(__file__).parent / "arrays"
TYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def array(dtype, shape=(2, 3)):
    values = numpy.arange(numpy.prod(shape)) * 7 % 23
    if dtype[-2] in "fi":
        values = values - 5
    if dtype[-2] == "f":
        values = values / 4
    return values.reshape(shape).astype(dtype)


def write(name, values, version):
    with open(FOLDER / name, "wb") as file:
        numpy.lib.format.write_array(file, values, version=version)


arrays = {name: array("<" + name) for name in TYPES}
arrays |= {name + "_big": array(">" + name) for name in ["f4", "f8", "i2", "u4", "i8"]}
arrays["bool"] = numpy.array([[True, False, False], [True, True, False]])
arrays["fortran"] = numpy.asfortranarray(array("<i4", (2, 3, 4)))
numpy.savez(FOLDER / "stored.npz", **arrays)
numpy.savez_compressed(FOLDER / "deflated.npz", **arrays)
write("version1.npy", array("<f4"), (1, 0))
write("version2.npy", array("<f4"), (2, 0))
write("version3.npy", array("<f4"), (3, 0))
write("fortran.npy", numpy.asfortranarray(array(">f8", (2, 3, 4))), (1, 0))
write("scalar.npy", numpy.array(3.0), (1, 0))
write("complex.npy", array("<f4").astype("<c8"), (1, 0))
write("structured.npy", numpy.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]), (1, 0))
write("text.npy", numpy.array(["a", "bc"]), (1, 0))
