"""What the lab's own timers cost: throughput with and without them, alternately, and the median ratio."""
import argparse
import json
import os
import statistics
import subprocess

CAPSTAN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "capstan")


def throughput(timers, flags):
    out = subprocess.run([CAPSTAN, "bench", "ps", "--json", "--repeat", "1", f"--timers={timers}", *flags], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=True)
    return json.loads(out.stdout)["configurations"][0]["runs"][0]["samples_per_second"]


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--rounds", type=int, default=9)
    ap.add_argument("flags", nargs="*", default=["--epochs", "8"], help="of capstan bench ps, after --")
    a = ap.parse_args()
    ratios = []
    for number in range(a.rounds):
        order = ("true", "false") if number % 2 == 0 else ("false", "true")
        rates = {timers: throughput(timers, a.flags) for timers in order}
        ratios.append(rates["true"] / rates["false"])
        print(f"  on {rates['true']:.1f}, off {rates['false']:.1f} samples/s: {ratios[-1]:.3f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
