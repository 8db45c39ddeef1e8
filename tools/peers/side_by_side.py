"""Capstan and its peers in one run on one machine: the ratios of docs/benchmarking.md.

Every comparison alternates between Capstan and the peer and takes the median of each, because timings are noisy.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CAPSTAN = os.path.join(HERE, "..", "..", "capstan")


def ours(*flags):
    out = subprocess.run([CAPSTAN, "bench", "wire", "--json", *flags], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=True)
    return json.loads(out.stdout)


def peer(*flags):
    out = subprocess.run([sys.executable, "comm.py", *flags, "--runs", "1"], cwd=HERE, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=True)
    return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]


def perftest(size, count):
    """Bytes per second of UCX's own benchmark over tcp on loopback."""
    env = dict(os.environ, UCX_TLS="tcp", UCX_NET_DEVICES="lo")
    flags = ["-t", "ucp_am_bw", "-s", str(size), "-n", str(count), "-w", "2", "-p", "13399"]
    server = subprocess.Popen(["ucx_perftest", *flags], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.7)
        out = subprocess.run(["ucx_perftest", "127.0.0.1", *flags, "-f"], env=env, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, timeout=120).stdout
    finally:
        server.kill()
        server.wait()
    rows = [line.split() for line in out.splitlines() if re.match(r"^(Final:)?\s*\d+\s+[\d.]+\s", line)]
    return float(rows[-1][-3]) * 2**20  # overall, in MiB a second


def row(name, mine, theirs, ratio, bar):
    print(f"{name:<58} {mine:>14} {theirs:>14} {ratio:>7.2f}   bar {bar}", flush=True)


def alternate(rounds, mine, theirs):
    a, b = [], []
    for _ in range(rounds):
        b.append(theirs())
        a.append(mine())
    return statistics.median(a), statistics.median(b), a


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--rounds", type=int, default=3)
    a = ap.parse_args()
    print(f"{'':<58} {'capstan':>14} {'peer':>14} {'ratio':>7}")

    for model, bar in (("lenet", ">= 10"), ("resnet50", ">= 4")):
        floors = []

        def mine():
            r = ours("--model", model, "--workers", "4", "--strategy", "sync")
            floors.append((r["floor_ratio"], r["server_rss_bytes"], r["bytes"]))
            return r["seconds_per_iteration"]

        m, t, _ = alternate(a.rounds, mine,
                            lambda: peer("dense", "--model", model, "--workers", "4", "--protocol", "rpc-batch")[0]["s_per_iter"])
        row(f"{model}, 4 workers, sync, sgd momentum / torch RPC batch", f"{m * 1e3:.3f} ms", f"{t * 1e3:.2f} ms", t / m, bar)
        if model == "resnet50":
            ratio = statistics.median(f[0] for f in floors)
            row("  floor ratio", f"{ratio:.2f}", "", ratio, "<= 2")
            rss, size = max(f[1] for f in floors), floors[0][2]
            allowed = 1.25 * 2 * size + 40e6
            row("  server memory / (1.25 x (weights + momentum) + 40 MB)", f"{rss / 1e6:.0f} MB", f"{allowed / 1e6:.0f} MB", rss / allowed, "<= 1")

    m, t, _ = alternate(a.rounds, lambda: ours("--model", "bytes:1024", "--workers", "1", "--strategy", "async")["p50_us"],
                        lambda: next(r["p50_us"] for r in peer("latency", "--workers", "1") if r["kind"] == "pushpull"))
    row("1 KB, 1 worker, async, p50 / torch RPC one call", f"{m:.1f} us", f"{t:.0f} us", t / m, ">= 8")

    flags = ("--model", "resnet50", "--workers", "1", "--transport", "ucx", "--optimizer", "none")
    size = ours(*flags, "--iterations", "2")["bytes"]
    m, t, _ = alternate(a.rounds, lambda: ours(*flags)["gigabytes_per_second"] * 1e9, lambda: perftest(size, 20))
    row("resnet50 over ucx, no optimizer / ucx_perftest ucp_am_bw", f"{m / 1e9:.2f} GB/s", f"{t / 1e9:.2f} GB/s", m / t, ">= 0.8")


if __name__ == "__main__":
    main()
