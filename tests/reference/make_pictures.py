"""Writes small pictures of every kind, and pictures.json: what PIL and torchvision make of them.

    /usr/bin/python3 tests/reference/make_pictures.py
"""
import json
import os

import numpy as np
from PIL import Image
from torchvision import transforms

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "pictures")
SIDE = 24


def picture(width, height, seed):
    """Smooth colours with some edges, as photos have."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for _ in range(3):
        a, b, c, d = rng.uniform(0.5, 3, 4)
        planes.append(128 + 60 * np.sin(a * x / width * 6 + b) + 50 * np.cos(c * y / height * 6 + d))
    rgb = np.stack(planes, axis=-1)
    rgb[height // 4:height // 2, width // 3:width // 2] = rng.uniform(0, 255, 3)
    return Image.fromarray(np.clip(rgb, 0, 255).astype(np.uint8))


def save(image, name, **options):
    image.save(os.path.join(FOLDER, name), **options)


def pixels(image):
    return np.asarray(image.convert("RGB")).reshape(-1).tolist()


def loaded(name):
    with open(os.path.join(FOLDER, name), "rb") as f:
        return Image.open(f).convert("RGB")


def main():
    os.makedirs(FOLDER, exist_ok=True)
    save(picture(200, 150, 1), "photo.jpg", quality=90)
    save(picture(90, 140, 2), "upright.jpg", quality=95, subsampling=0)
    save(picture(100, 80, 3), "progressive.jpg", quality=90, progressive=True)
    save(picture(80, 80, 4).convert("L"), "grey.jpg", quality=90)
    # The colour changes where a block of 16 pixels begins: a decoder that starts there must look at the one before.
    halves = np.zeros((64, 96, 3), np.uint8)
    halves[:, :48] = (200, 30, 30)
    halves[:, 48:] = (30, 30, 200)
    save(Image.fromarray(halves), "halves.jpg", quality=90)
    save(picture(40, 40, 5).convert("CMYK"), "cmyk.jpg", quality=90)
    save(picture(70, 50, 6), "rgb.png")
    save(picture(50, 70, 7).quantize(32), "palette.png")
    save(picture(60, 60, 8).convert("L"), "grey.png")
    grey16 = np.asarray(picture(60, 45, 9).convert("L")).astype(np.uint16) * 256 + 77
    save(Image.fromarray(grey16), "grey16.png")
    alpha = picture(64, 48, 10)
    alpha.putalpha(Image.linear_gradient("L").resize((64, 48)))
    save(alpha, "alpha.png")

    result = {"side": SIDE, "middle": {}, "parts": []}
    test = transforms.Compose([transforms.Resize(round(SIDE * 256 / 224)), transforms.CenterCrop(SIDE)])
    for name in sorted(os.listdir(FOLDER)):
        if name == "cmyk.jpg":
            continue
        # PIL reads grey pictures of 16 bits as 32-bit numbers and does not scale them down when converting.
        image = Image.fromarray((grey16 >> 8).astype(np.uint8)).convert("RGB") if name == "grey16.png" else loaded(name)
        result["middle"][name] = pixels(test(image))
    # x, y, width, height, mirrored: as it is, enlarged, reduced by less than two, by much, and a part at every edge
    for name, part, mirrored in (("photo.jpg", (10, 20, 40, 30), False), ("photo.jpg", (90, 60, 17, 11), True),
                                 ("photo.jpg", (0, 0, 200, 150), False), ("photo.jpg", (101, 75, 99, 75), True),
                                 ("upright.jpg", (0, 40, 90, 100), False), ("progressive.jpg", (33, 21, 30, 44), True),
                                 ("halves.jpg", (48, 16, 24, 24), False), ("halves.jpg", (24, 32, 24, 24), True),
                                 ("rgb.png", (5, 3, 61, 40), True), ("grey.jpg", (7, 9, 50, 60), False)):
        x, y, w, h = part
        shown = loaded(name).crop((x, y, x + w, y + h)).resize((SIDE, SIDE), Image.BILINEAR)
        if mirrored:
            shown = shown.transpose(Image.FLIP_LEFT_RIGHT)
        result["parts"].append({"file": name, "part": part, "mirrored": mirrored, "pixels": pixels(shown)})
    with open(os.path.join(HERE, "pictures.json"), "w") as f:
        json.dump(result, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
