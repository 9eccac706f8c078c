"""Reads a training set with giantstream_torch, pyarrow.dataset and MosaicML streaming, and prints figures as Markdown.

Every measurement is a process of its own, and the sides alternate. Figures are medians over the rounds: rows per
second of wall time and of CPU time (steadier where other work uses the machine), and the peak memory of the process
and its largest worker. Ratios are medians of the rounds' ratios, giantstream_torch over the other side.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

SIDE = pathlib.Path(__file__).with_name("side.py")

SIDES = {
    "giantstream_torch": ["giantstream"],
    "pyarrow.dataset, not shuffled": ["arrow"],
    "MosaicML": ["mosaicml"],
    "MosaicML, 2 workers": ["mosaicml", "--workers", "2"],
}


def run(*command):
    done = subprocess.run([sys.executable, "-W", "ignore", str(SIDE), *command], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip().splitlines()[-1:]


def size(folder):
    return sum(f.stat().st_size for f in pathlib.Path(folder).rglob("*") if f.is_file()) / (1 << 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generation", required=True)
    parser.add_argument("--work", required=True, help="folder for the copy in MosaicML's format")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args()

    mds = os.path.join(args.work, "mds")
    if not os.path.exists(os.path.join(mds, "index.json")):
        shutil.rmtree(mds, ignore_errors=True)
        run("convert", "--generation", args.generation, "--mds", mds)
    flags = ["--generation", args.generation, "--mds", mds, "--batch", str(args.batch), "--epochs", str(args.epochs)]
    took = {side: [] for side in SIDES}
    before = os.getloadavg()[0]
    for _ in range(args.rounds):
        for side, command in SIDES.items():
            took[side].append(json.loads(run(*command, *flags)[0]))
    contents = {(t["rows"], t["features"], t["targets"]) for takes in took.values() for t in takes}
    if len(contents) != 1:
        raise SystemExit(f"the sides did not read the same: {contents}")

    rows = next(iter(contents))[0] // args.epochs
    print(f"{rows:,} rows, {args.epochs} epochs, batches of {args.batch}; {args.rounds} rounds on {os.cpu_count()} CPUs.")
    print(f"Load average {before:.1f} before, {os.getloadavg()[0]:.1f} after.")
    print(f"Parquet {size(os.path.join(args.generation, 'dataset')):,.0f} MiB (all columns), MosaicML's shards {size(mds):,.0f} MiB.\n")
    print("| | rows/s | rows per CPU second | peak MiB | ratio of rows/s | ratio per CPU second |")
    print("|---|---|---|---|---|---|")
    speeds = {side: [(t["rows"] / t["seconds"], t["rows"] / t["cpu"]) for t in takes] for side, takes in took.items()}
    ours = speeds["giantstream_torch"]
    for side, takes in speeds.items():
        wall, cpu = (statistics.median(x) for x in zip(*takes))
        peak = statistics.median(t["peak_mib"] for t in took[side])
        ratios = [statistics.median(a[i] / b[i] for a, b in zip(ours, takes)) for i in range(2)]
        told = ["", ""] if takes is ours else [f"{r:.2f}" for r in ratios]
        print(f"| {side} | {wall:,.0f} | {cpu:,.0f} | {peak:,.0f} | {told[0]} | {told[1]} |")


if __name__ == "__main__":
    main()
