"""Trains XR-Linear on one split of a graph with giantstream and with PECOS and prints the figures as Markdown.

A tenth of the rows is hidden. Both sides have the same TF-IDF, the same tree and the same settings. Each training is
a process of its own, and the two sides alternate. The figures are medians over the rounds.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def run(command, threads):
    env = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS=str(threads))
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if lines else {}


def flat(took):
    p1, p3, p5 = took.pop("precision")
    return dict(took, p1=p1, p3=p3, p5=p5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--go", required=True, help="the program built from this folder")
    parser.add_argument("--data", required=True, help="folder of nodes.jsonl.gz and edges.jsonl.gz")
    parser.add_argument("--work", required=True, help="folder for matrices and models (1 GB), removed at the end")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--man", action="store_true", help="use matcher-aware negatives as well (20 clusters)")
    parser.add_argument("--epsilon", type=float, default=0.1, help="giantstream's tolerance; PECOS keeps its default, 0.1")
    args = parser.parse_args()
    pecos = [sys.executable, os.path.join(HERE, "pecos_stage.py")]
    common = ["--work", args.work, "--threads", str(args.threads)]
    shape = run(pecos + ["prepare", "--data", args.data] + common, args.threads)
    run([args.go, "--stage", "tree"] + common, args.threads)
    print(
        f"{shape['train']:,} rows to train on, {shape['test']:,} hidden, {shape['features']:,} features, {shape['positives']:,} positives; "
        f"{args.rounds} rounds, {args.threads} threads, tolerance {args.epsilon} and 0.1, load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs.\n"
    )
    commands = {
        "giantstream": [args.go, "--epsilon", str(args.epsilon)] + (["--matched", "20"] if args.man else []),
        "PECOS": pecos + ["run"] + (["--negatives", "tfn+man"] if args.man else []),
    }
    taken = {side: [] for side in commands}
    for _ in range(args.rounds):
        for side, command in commands.items():
            taken[side].append(flat(run(command + common, args.threads)))
    print("| | training, wall s | CPU s | peak MiB | P@1 | P@3 | P@5 | query, median ms | all queries, ms each |")
    print("|---|---|---|---|---|---|---|---|---|")
    m = {side: {k: statistics.median(t[k] for t in takes) for k in ("wall", "cpu", "peak", "p1", "p3", "p5", "single_ms", "batch_ms")} for side, takes in taken.items()}
    for side, r in m.items():
        print(f"| {side} | {r['wall']:.1f} | {r['cpu']:.1f} | {r['peak']:.0f} | {r['p1']:.4f} | {r['p3']:.4f} | {r['p5']:.4f} | {r['single_ms']:.3f} | {r['batch_ms']:.3f} |")
    us, them = m["giantstream"], m["PECOS"]
    ratios = " | ".join(f"**{statistics.median(b[k] / a[k] for a, b in zip(*taken.values())):.1f}×**" for k in ("wall", "cpu"))
    differences = " | ".join(f"**{us[k] - them[k]:+.4f}**" for k in ("p1", "p3", "p5"))
    print(f"| **giantstream against PECOS** | {ratios} | **{us['peak'] / them['peak']:.2f}** | {differences} | **{them['single_ms'] / us['single_ms']:.1f}×** | **{them['batch_ms'] / us['batch_ms']:.1f}×** |")
    print(f"\nLoad average after them {os.getloadavg()[0]:.1f}.")
    shutil.rmtree(args.work)


if __name__ == "__main__":
    main()
