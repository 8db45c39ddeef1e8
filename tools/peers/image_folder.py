"""Images per second and core: `capstan bench data` and torchvision on the same JPEGs, in alternate rounds.

Theirs is what ImageNet's examples do: ImageFolder, RandomResizedCrop(224), RandomHorizontalFlip, ToTensor, Normalize,
in one thread.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from PIL import Image
from torchvision import datasets, transforms

HERE = os.path.dirname(os.path.abspath(__file__))


def photo(rng, width, height):
    """Noise whose amplitude falls as 1/f, as that of natural images does, with channels that mostly agree."""
    f = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :])
    f[0, 0] = 1
    planes = []
    for _ in range(4):
        spectrum = np.exp(2j * np.pi * rng.random(f.shape)) / f
        plane = np.fft.irfft2(spectrum, s=(height, width))
        planes.append((plane - plane.mean()) / plane.std())
    shared = planes[3]
    rgb = np.stack([128 + 55 * (0.85 * shared + 0.35 * p) for p in planes[:3]], axis=-1)
    return np.clip(rgb, 0, 255).astype(np.uint8)


def make_photos(folder, count, quality=90):
    rng = np.random.default_rng(1)
    for split, n in (("train", count), ("val", 4)):
        for i in range(n):
            name = os.path.join(folder, split, f"class{i % 4}", f"{i:04}.jpg")
            os.makedirs(os.path.dirname(name), exist_ok=True)
            width, height = (500, 375) if i % 3 else (375, 500)
            Image.fromarray(photo(rng, width, height)).save(name, quality=quality)


def theirs(folder, epochs):
    data = datasets.ImageFolder(os.path.join(folder, "train"), transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]))
    begin = time.perf_counter()
    for _ in range(epochs):
        for i in range(len(data)):
            data[i]
    return epochs * len(data) / (time.perf_counter() - begin)


def ours(capstan, folder, epochs, seed):
    out = subprocess.run([capstan, "bench", "data", "--dataset", "imagefolder", "--data-dir", folder, "--threads", "1",
                          "--epochs", str(epochs), "--seed", str(seed), "--json"],
                         stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(out.stdout)["images_per_second_per_core"]


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--capstan", default=os.path.join(HERE, "..", "..", "capstan"))
    ap.add_argument("--photos", type=int, default=200)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--folder", help="an image folder to use instead of made-up photos")
    a = ap.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as made:
        folder = a.folder or made
        if not a.folder:
            make_photos(folder, a.photos)
        theirs(folder, 1)  # files and code into memory
        mine, peer = [], []
        for i in range(a.rounds):
            peer.append(theirs(folder, a.epochs))
            mine.append(ours(a.capstan, folder, a.epochs, i))
        m, p = statistics.median(mine), statistics.median(peer)
        print(json.dumps({"capstan": mine, "torchvision": peer, "images_per_second_per_core": [m, p], "ratio": m / p}))


if __name__ == "__main__":
    main()
