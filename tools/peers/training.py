"""Training, measured side by side in alternate rounds.

  training.py python       ResNet-18 for CIFAR, batch 32: one worker of one thread and its server, against the same
                           network in Python PyTorch with one thread
  training.py compute      ResNet-50 on 3x64x64, batch 8: the share of the step that two sync workers compute
  training.py checkpoint   the same job, with checkpoints written all the time and with none
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def train(capstan, *flags):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([capstan, "train", "--json", "--train-dir", os.path.join(folder, "run"), *flags],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(run.stdout)


def resnet18_capstan(capstan, steps):
    result = train(capstan, "--network", "resnet18-cifar", "--dataset", f"synthetic:3x32x32:10:{32 * steps}",
                   "--batch-size", "32", "--workers", "1", "--threads", "1", "--epochs", "1", "--lr", "0.01",
                   "--checkpoint-every", "never")
    return result["seconds"] / result["steps"]


def resnet18_python(steps):
    """A process of its own, as ours are; prints its seconds per step."""
    import torch
    import torchvision
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torchvision.models.resnet18(num_classes=10)
    model.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    model.maxpool = torch.nn.Identity()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(32 * steps, 3, 32, 32), torch.randint(0, 10, (32 * steps,))
    begin = None
    for step in range(steps):
        part = slice(32 * step, 32 * step + 32)
        loss = torch.nn.functional.cross_entropy(model(images[part]), labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        begin = begin or time.perf_counter()  # after the first step, which warms up
    print((time.perf_counter() - begin) / (steps - 1))


def compare_python(args):
    ours, theirs = [], []
    for _ in range(args.rounds):
        ours.append(resnet18_capstan(args.capstan, args.steps))
        theirs.append(float(subprocess.run([sys.executable, __file__, "python-step", "--steps", str(args.steps)],
                                           stdout=subprocess.PIPE, check=True).stdout))
        print(f"seconds a step: capstan {ours[-1]:.3f}, python {theirs[-1]:.3f}", flush=True)
    print(f"python / capstan: {statistics.median(theirs) / statistics.median(ours):.2f} (medians of {args.rounds})")


def resnet50(capstan, steps, every):
    return train(capstan, "--network", "resnet50", "--dataset", f"synthetic:3x64x64:10:{16 * steps}", "--batch-size",
                 "8", "--workers", "2", "--threads", "1", "--epochs", "1", "--lr", "0.01", "--checkpoint-every", every)


def compute_share(args):
    shares = []
    for _ in range(args.rounds):
        r = resnet50(args.capstan, args.steps, "never")
        shares.append(r["compute_seconds"] / r["seconds"])
        print(f"{r['seconds'] / r['steps']:.3f} s a step, {100 * shares[-1]:.1f} % of it computation", flush=True)
    print(f"median {100 * statistics.median(shares):.1f} %")


def checkpoint_cost(args):
    without, beside = [], []
    for _ in range(args.rounds):
        for every, times in (("never", without), ("1", beside)):
            r = resnet50(args.capstan, args.steps, every)
            times.append(r["seconds"] / r["steps"])
        print(f"seconds a step: {without[-1]:.3f} without, {beside[-1]:.3f} while checkpoints are written", flush=True)
    ratio = statistics.median(beside) / statistics.median(without)
    print(f"{100 * (ratio - 1):+.1f} % (medians of {args.rounds})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["python", "compute", "checkpoint", "python-step"])
    parser.add_argument("--capstan", default=os.path.join(HERE, "..", "..", "build", "release", "bin", "capstan"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.what == "python-step":
        resnet18_python(arguments.steps)
    else:
        {"python": compare_python, "compute": compute_share, "checkpoint": checkpoint_cost}[arguments.what](arguments)
