"""Runs a BERT model in giantstream and in PyTorch side by side and prints the figures as Markdown.

Both sides have the same weights, texts and batches. Every measurement is a process of its own, and the two sides
alternate. Figures are medians over the rounds: tokens (without padding) per second of wall time and of CPU time
(steadier where other work uses the machine), and the peak memory of the process. The ratio is the median of the
rounds' ratios.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def run(command):
    env = dict(os.environ, OMP_WAIT_POLICY="passive")  # waiting threads sleep, so that waiting does not count as CPU time
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def write_texts(data, work):
    """Writes texts as they are, and texts long enough to fill 128 tokens."""
    texts = []
    with gzip.open(os.path.join(data, "nodes.jsonl.gz"), "rt", encoding="utf-8") as f:
        for line in f:
            texts.append(" ".join(json.loads(line)["text"].split()))
            if len(texts) == 5_120:
                break
    files = {"product texts": texts[:256], "128 tokens each": [" ".join(texts[i : i + 40]) for i in range(0, len(texts), 40)]}
    for name, lines in files.items():
        path = os.path.join(work, name.replace(" ", "-"))
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(x + "\n" for x in lines)
        files[name] = path
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--go", required=True, help="the program built from this folder")
    parser.add_argument("--model", required=True, help="directory of the model")
    parser.add_argument("--data", required=True, help="folder of nodes.jsonl.gz")
    parser.add_argument("--work", required=True, help="folder for texts")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", default="2", help="thread counts, with commas")
    parser.add_argument("--modes", default="encode,train", help="modes, with commas: %(default)s")
    parser.add_argument("--seconds", default="8", help="how long each measurement takes, at least")
    args = parser.parse_args()

    os.makedirs(args.work, exist_ok=True)
    files = write_texts(args.data, args.work)
    print(f"{args.rounds} rounds of {args.seconds} s, load average before them {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs.\n")
    print("| | texts | threads | | tokens/s | tokens per CPU second | peak MiB |")
    print("|---|---|---|---|---|---|---|")
    for mode in args.modes.split(","):
        for name, path in files.items():
            for threads in args.threads.split(","):
                row(mode, name, path, threads, args)
    print(f"\nLoad average after them {os.getloadavg()[0]:.1f}.")


def row(mode, name, path, threads, args):
    sides = {"giantstream": [args.go], "PyTorch": [sys.executable, os.path.join(HERE, "torch_side.py")]}
    taken = {side: [] for side in sides}
    for _ in range(args.rounds):
        for side, command in sides.items():
            flags = ["--mode", mode, "--model", args.model, "--texts", path, "--threads", threads, "--seconds", args.seconds]
            got = run(command + flags)
            taken[side].append((got["tokens"] / got["seconds"], got["tokens"] / got["cpu"], got["peak_mib"]))
    for side, takes in taken.items():
        line(mode, name, threads, side, [statistics.median(x) for x in zip(*takes)], "{:,.0f}", "{:,.0f}")
    ratios = [[a / b for a, b in zip(*pair)] for pair in zip(taken["giantstream"], taken["PyTorch"])]
    line(mode, name, threads, "**ratio**", [statistics.median(x) for x in zip(*ratios)], "**{:.2f}**", "**{:.2f}**")


def line(mode, name, threads, side, figures, speed, memory):
    wall, cpu, peak = figures
    print(f"| {mode} | {name} | {threads} | {side} | {speed.format(wall)} | {speed.format(cpu)} | {memory.format(peak)} |", flush=True)


if __name__ == "__main__":
    main()
