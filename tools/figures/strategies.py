"""The tables of docs/strategies.md and docs/simulation.md, measured anew. Needs a machine that does nothing else.

  strategies.py stragglers   throughput and accuracy with one of four workers 3 and 10 times slower
  strategies.py simulation   predictions from a run of one worker, beside real runs of 2, 4 and 8
  strategies.py plot DIR     test accuracy over epochs of the runs of a `capstan compare`, as SVG on standard output
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile


def run(capstan, *arguments):
    done = subprocess.run([capstan, *arguments, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True)
    return json.loads(done.stdout)


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def stragglers(args):
    """LeNet on digits, four workers of one thread; every run uses as many samples."""
    workers, batch, samples = 4, 32, 20 * 1438
    # How many gradients one update is made of.
    merged = {"sync": 4, "backup:1": 3, "ssp:3": 1, "async": 1, "batch:2": 2}
    row("strategy", "slow worker", "samples/s", "relative to none", "test accuracy", "staleness mean, max", "dropped")
    row(*["---"] * 7)
    for strategy, k in merged.items():
        whole = None
        for factor in ("1x", "3x", "10x"):
            results = []
            for _ in range(args.rounds):
                with tempfile.TemporaryDirectory() as folder:
                    results.append(run(args.capstan, "train", "--train-dir", os.path.join(folder, "run"),
                                       "--strategy", strategy, "--workers", str(workers), "--threads", "1",
                                       "--slow-worker", f"1:{factor}", "--epochs", "100000",
                                       "--max-steps", str(samples // (batch * k)), "--checkpoint-every", "never"))
            rate = statistics.median(r["samples_per_second"] for r in results)
            whole = whole or rate
            accuracy = statistics.median(r["test_accuracy"] for r in results)
            last = results[-1]
            row(f"`{strategy}`", "none" if factor == "1x" else factor, f"{rate:.0f}", f"{100 * rate / whole:.0f} %",
                f"{100 * accuracy:.1f} %", f"{last['staleness_mean']:.1f}, {last['staleness_max']}",
                last["dropped_pushes"])


def simulation(args):
    """Calibrated by one worker of one thread, on all cores of this machine. One epoch, since evaluations take time
    from the workers that is not simulated."""
    jobs = {"lenet": ("1x28x28", 400), "resnet20": ("3x32x32", 20)}
    row("network", "strategy", "workers", "predicted samples/s", "measured", "predicted ÷ measured")
    row(*["---"] * 6)
    for network, (shape, steps) in jobs.items():
        for strategy in ("sync", "async"):
            with tempfile.TemporaryDirectory() as folder:
                runs = {}
                for i in range(args.rounds):
                    for workers in (1, 2, 4, 8):
                        place = os.path.join(folder, f"{workers}-{i}")
                        result = run(args.capstan, "train", "--train-dir", place, "--network", network,
                                     "--dataset", f"synthetic:{shape}:10:{32 * steps * workers}", "--batch-size", "32",
                                     "--strategy", strategy, "--workers", str(workers), "--threads", "1",
                                     "--epochs", "1", "--checkpoint-every", "never")
                        runs.setdefault(workers, []).append((result["samples_per_second"], place))
                middle = {workers: sorted(all)[len(all) // 2] for workers, all in runs.items()}
                for workers in (2, 4, 8):
                    predicted = run(args.capstan, "simulate", "--calibrate", middle[1][1],
                                    "--cores", str(os.cpu_count()), "--threads", "1", "--workers", str(workers),
                                    "--strategy", strategy, *args.simulate)
                    rate, real = predicted["predictions"][0]["samples_per_second"], middle[workers][0]
                    row(network, f"`{strategy}`", workers, f"{rate:.0f}", f"{real:.0f}", f"{rate / real:.2f}")


def plot(args):
    """A panel for each run: its own curve, and those of all others in grey."""
    curves = {}
    for line in open(os.path.join(args.folder, "metrics.jsonl")):
        one = json.loads(line)
        per_epoch = one["evaluations"][-1]["samples"] / one["epochs"]
        curves[one["strategy"]] = [(e["samples"] / per_epoch, e["test_accuracy"]) for e in one["evaluations"]]
    columns, width, height, gap, left, top = 5, 150, 86, 22, 36, 30
    rows = (len(curves) + columns - 1) // columns
    last = max(epoch for curve in curves.values() for epoch, _ in curve)
    floor = 0.5  # accuracy at the bottom of a panel

    def place(point):
        return width * point[0] / last, height * (1 - (max(floor, point[1]) - floor) / (1 - floor))

    def path(curve):
        return "M" + "L".join("{:.1f},{:.1f}".format(*place(point)) for point in curve)

    total = left + columns * (width + gap), top + rows * (height + gap + 14) + 8
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total[0]} {total[1]}" width="{total[0]}"'
          f' height="{total[1]}" font-family="system-ui, sans-serif" font-size="11" fill="#1f2933">')
    print("<defs>")
    for i, curve in enumerate(curves.values()):
        print(f'<path id="c{i}" d="{path(curve)}" fill="none"/>')
    print("</defs>")
    print('<rect width="100%" height="100%" fill="#ffffff"/>')
    print(f'<text x="{left}" y="16" font-size="12">test accuracy over epochs (0 to {last:g}) of samples that were used; grey: all others</text>')
    for i, (name, curve) in enumerate(curves.items()):
        x, y = left + i % columns * (width + gap), top + 14 + i // columns * (height + gap + 14)
        print(f'<g transform="translate({x},{y})">')
        for part, text in ((floor, f"{100 * floor:.0f} %"), (1.0, "100 %")):
            at = height * (1 - (part - floor) / (1 - floor))
            print(f'<path d="M0,{at}H{width}" stroke="#d5dae0" fill="none"/>')
            if i % columns == 0:
                print(f'<text x="-4" y="{at + 4}" text-anchor="end" font-size="9" fill="#616e7c">{text}</text>')
        print("".join(f'<use href="#c{other}" stroke="#e4e7eb"/>' for other in range(len(curves)) if other != i))
        print(f'<use href="#c{i}" stroke="#0b69a3" stroke-width="2"/>')
        print(f'<circle cx="{place(curve[-1])[0]:.1f}" cy="{place(curve[-1])[1]:.1f}" r="3" fill="#0b69a3"/>')
        print(f'<text x="0" y="-5" font-weight="600">{name}</text>')
        print(f'<text x="{width}" y="-5" text-anchor="end">{100 * curve[-1][1]:.1f} %</text>')
        print("</g>")
    print("</svg>")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["stragglers", "simulation", "plot"])
    parser.add_argument("folder", nargs="?", help="of the runs to plot")
    parser.add_argument("--capstan", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../capstan"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--simulate", nargs="*", default=[], help="more flags for the predictions")
    args = parser.parse_args()
    {"stragglers": stragglers, "simulation": simulation, "plot": plot}[args.what](args)


if __name__ == "__main__":
    main()
