"""Runs giantstream's featurization and PECOS side by side and prints the figures as Markdown.

Every measurement is a process of its own; giantstream and PECOS alternate. The figures are medians over the
rounds of wall seconds, CPU seconds (steadier where other work uses the machine) and memory: the peak while
the stage ran, and the peak less what was resident before (inputs, interpreter, libraries).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

STAGES = {
    "fit": "TF-IDF fit",
    "transform": "TF-IDF transform",
    "pifa": "PIFA, exact",
    "pifa-tree": "PIFA + tree, from TF-IDF (giantstream: sketch of 256)",
    "exact-tree": "tree on exact PIFA",
}
HERE = os.path.dirname(os.path.abspath(__file__))


def run(command, threads=None):
    env = dict(os.environ, OMP_WAIT_POLICY="passive")  # waiting threads sleep, so that waiting does not count as CPU time
    if threads:
        env["OMP_NUM_THREADS"] = str(threads)
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--go", required=True, help="the program built from this folder")
    parser.add_argument("--data", required=True, help="folder of nodes.jsonl.gz and edges.jsonl.gz")
    parser.add_argument("--work", required=True, help="folder for matrices (1 GB)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="1,2", help="thread counts, with commas")
    parser.add_argument("--stages", default=",".join(STAGES), help="stages, with commas: %(default)s")
    args = parser.parse_args()

    os.makedirs(args.work, exist_ok=True)
    pecos = [sys.executable, os.path.join(HERE, "pecos_stage.py")]
    common = ["--data", args.data, "--work", args.work]
    shape = run(pecos + ["prepare"] + common + ["--threads", "2"], 2)
    print(
        f"{shape['rows']:,} texts, {shape['features']:,} features; {shape['x_nonzeros']:,} non-zeros in TF-IDF, "
        f"{shape['z_nonzeros']:,} in exact PIFA, {shape['edges']:,} in the adjacency. {args.rounds} rounds, "
        f"load average before them {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs.\n"
    )
    print("| stage | threads | | wall s | CPU s | peak MiB | above inputs MiB | mean cosine |")
    print("|---|---|---|---|---|---|---|---|")
    for stage in args.stages.split(","):
        for threads in args.threads.split(","):
            row(stage, threads, args, pecos, common)
    print(f"\nLoad average after them {os.getloadavg()[0]:.1f}.")


def row(stage, threads, args, pecos, common):
    taken = {"giantstream": [], "PECOS": []}
    for seed in range(1, args.rounds + 1):
        for side in taken:
            leaves = os.path.join(args.work, "leaves")
            flags = ["--threads", threads, "--seed", str(seed), "--leaves", leaves]
            command = [args.go, "--stage", stage] if side == "giantstream" else pecos + [stage]
            got = run(command + common + flags, threads)
            got["grown"] = got["peak"] - got["base"]
            if stage.endswith("tree"):
                got.update(run(pecos + ["quality"] + common + ["--leaves", leaves]))
            taken[side].append(got)
    median = {
        side: {k: statistics.median(t[k] for t in takes) for k in takes[0] if isinstance(takes[0][k], (int, float))}
        for side, takes in taken.items()
    }
    for side, m in median.items():
        line(STAGES[stage], threads, side, m, "{:.2f}", "{:.0f}", "{:.4f}")
    ours, theirs = median["giantstream"], median["PECOS"]
    ratio = {k: theirs[k] / ours[k] if k in ("wall", "cpu") else ours[k] / theirs[k] for k in theirs if k in ours}
    line(STAGES[stage], threads, "**ratio**", ratio, "**{:.1f}×**", "**{:.2f}**", "**{:.3f}**")


def line(stage, threads, side, m, seconds, mib, cosine):
    cells = [stage, threads, side, seconds.format(m["wall"]), seconds.format(m["cpu"]), mib.format(m["peak"]), mib.format(m["grown"])]
    cells.append(cosine.format(m["cosine"]) if "cosine" in m else "")
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
