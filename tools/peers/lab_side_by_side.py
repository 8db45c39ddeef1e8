"""The strategy lab and the same averaging server on torch RPC, alternately, on one machine: the ratios of docs/benchmarking.md.

The peer is the faster of lab.py's two forms. The time that a trainer waits for gradients is its backward pass minus that of trainers
which send nothing.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CAPSTAN = os.path.join(HERE, "..", "..", "capstan")
CLASSES = {"max_val": 1024, "sparsity_percentage": 0}


def peer(batch, length, *flags):
    out = subprocess.run([sys.executable, "lab.py", "--batch", str(batch), "--length", str(length), *flags], cwd=HERE,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return json.loads(next(line for line in out.stdout.splitlines() if line.startswith("{")))


def ours(data, batch, *flags):
    out = subprocess.run([CAPSTAN, "bench", "ps", "--json", "--data", "Data", "--data-config-path", data, "--batch-size", str(batch),
                          "--repeat", "1", *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    metrics = json.loads(out.stdout)["configurations"][0]["runs"][0]["metrics"]
    return {m["name"]: m["p50"] / 1000 for m in metrics if m["rank"] == "all trainers"}


def compare(batch, length, iterations, rounds):
    waits, steps = [], []
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data.json")
        with open(data, "w") as file:
            values = dict(CLASSES, sample_count=2 * batch * iterations, sample_length=length)
            json.dump({"Data": {"data_class": "DummyData", "configurations": values}}, file)
        for _ in range(rounds):
            after, during = peer(batch, length), peer(batch, length, "--hook")
            mine, bare = ours(data, batch), ours(data, batch, "--trainer", "LocalTrainer", "--nserver", "0")
            backward = "backward_metric,backward"
            waited, step = mine[backward] - bare[backward], mine["batch_level_metric,batch_all"]
            print(f"  peer waits {after['wait_s']:.4f} / {during['wait_s']:.4f} s, steps {after['step_s']:.4f} / {during['step_s']:.4f} s;"
                  f" Capstan waits {waited:.4f} s, step {step:.4f} s", flush=True)
            waits.append(min(after["wait_s"], during["wait_s"]) / waited)
            steps.append(min(after["step_s"], during["step_s"]) / step)
    print(f"{batch} x {length}: waits {statistics.median(waits):.1f} times shorter, steps {statistics.median(steps):.2f} times faster")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--iterations", type=int, default=40, help="steps of each trainer")
    a = ap.parse_args()
    for batch, length in ((10, 100), (32, 1024)):
        compare(batch, length, a.iterations, a.rounds)


if __name__ == "__main__":
    main()
