"""Encodes texts in giantstream (float32 and int8), ONNX Runtime (float32 and dynamic int8), OpenVINO and PyTorch, side
by side, and prints the figures as Markdown.

All have the same weights and texts. Every measurement is a process of its own, and the sides alternate. Figures are
medians over the rounds: tokens (without padding) per second of wall time and of CPU time (steadier where other work
uses the machine), and the peak memory of the process. The ratio is the median of the rounds' ratios to giantstream's
float32. Quality is of embeddings of texts of 64 tokens at most: the cosine to giantstream's float32, and which share of
a text's ten nearest by float32 are among its ten nearest.
"""

import argparse
import gzip
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys

import numpy as np
import onnx

import graph

HERE = os.path.dirname(os.path.abspath(__file__))


def run(command):
    env = dict(os.environ, OMP_WAIT_POLICY="passive")  # waiting threads sleep, so that waiting does not count as CPU time
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def read_texts(path):
    with gzip.open(path, "rt", encoding="utf-8") as f:
        texts = [" ".join(str(json.loads(line).get("text") or "").split()) for line in f]
    return [t for t in texts if t]


def write(work, name, lines):
    path = os.path.join(work, name.replace(" ", "-"))
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(x + "\n" for x in lines)
    return path


def quantize(source, path):
    if os.path.exists(path):
        return
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source, path + ".part", weight_type=QuantType.QInt8, per_channel=True, reduce_range=False,
                     op_types_to_quantize=["MatMul", "Attention"],
                     extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})  # behind ONNX Runtime's own operators
    os.replace(path + ".part", path)


def sides(args):
    """The programs that there are, by name: a command without texts and threads."""
    fused, plain, int8 = (os.path.join(args.work, n) for n in ("fused.onnx", "plain.onnx", "int8.onnx"))
    graph.save(args.model, True, fused)
    graph.save(args.model, False, plain)
    quantize(fused, int8)
    other = [sys.executable, os.path.join(HERE, "side.py"), "--model", args.model]
    found = {
        "giantstream float32": [args.go, "--model", args.model],
        "giantstream int8": [args.go, "--model", args.model, "--precision", "int8"],
        "ONNX Runtime float32": other + ["--engine", "ort", "--graph", fused],
        "ONNX Runtime int8": other + ["--engine", "ort-int8", "--graph", int8],
    }
    if args.avx2:
        off = ["env", "GODEBUG=cpu.avx512f=off"]
        for side in ("giantstream float32", "giantstream int8"):
            found[side + ", AVX2"] = off + found[side]
    if importlib.util.find_spec("openvino"):
        found["OpenVINO float32"] = other + ["--engine", "openvino", "--graph", plain]
    if importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"):
        found["PyTorch eager"] = [sys.executable, os.path.join(HERE, "..", "bert", "torch_side.py"), "--mode", "encode",
                                  "--model", args.model]
    return found


def speed(found, files, args):
    print("| texts | threads | | tokens/s | ratio | tokens per CPU second | ratio | peak MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for name, path in files.items():
        for threads in args.threads.split(","):
            taken = {side: [] for side in found}
            for _ in range(args.rounds):
                for side, command in found.items():
                    got = run(command + ["--texts", path, "--threads", threads, "--seconds", args.seconds])
                    taken[side].append((got["tokens"] / got["seconds"], got["tokens"] / got["cpu"], got["peak_mib"]))
            base = taken["giantstream float32"]
            for side, takes in taken.items():
                wall, cpu, peak = (statistics.median(x) for x in zip(*takes))
                ratio = [statistics.median(a[k] / b[k] for a, b in zip(takes, base)) for k in (0, 1)]
                print(f"| {name} | {threads} | {side} | {wall:,.0f} | {ratio[0]:.2f} | {cpu:,.0f} | {ratio[1]:.2f} "
                      f"| {peak:,.0f} |", flush=True)


def nearest(vectors):
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -2)
    return np.argpartition(-scores, 10, axis=1)[:, :10]


def quality(found, graphs, args):
    print("\n| texts of | | mean cosine | least | recall@10 |\n|---|---|---|---|---|")
    for name, texts in graphs.items():
        texts = random.Random(7).sample(texts, min(len(texts), args.sample))
        path, vectors = write(args.work, f"sample of {name}", texts), {}
        for side, command in found.items():
            if "PyTorch" in side:
                continue
            out = os.path.join(args.work, "embeddings")
            run(command + ["--texts", path, "--length", "64", "--threads", "2", "--embeddings", out])
            vectors[side] = np.fromfile(out, "<f4").reshape(len(texts), -1)
        exact = vectors.pop("giantstream float32")
        near = nearest(exact)
        for side, got in vectors.items():
            cosines = (exact * got).sum(1)
            shared = statistics.fmean(len(set(a) & set(b)) / 10 for a, b in zip(near.tolist(), nearest(got).tolist()))
            print(f"| {name} | {side} | {cosines.mean():.5f} | {cosines.min():.4f} | {shared:.4f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--go", required=True, help="the program built from cmd/bench/bert")
    parser.add_argument("--model", required=True, help="directory of the model")
    parser.add_argument("--data", required=True, nargs="+", help="folders of nodes.jsonl.gz; speed is measured on the first")
    parser.add_argument("--work", required=True, help="folder for graphs, texts and embeddings")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", default="1,2", help="thread counts, with commas")
    parser.add_argument("--avx2", action="store_true", help="measure giantstream without AVX-512, too")
    parser.add_argument("--seconds", default="3", help="how long each measurement takes, at least")
    parser.add_argument("--sample", type=int, default=1000, help="texts of a folder whose embeddings are compared")
    args = parser.parse_args()

    os.makedirs(args.work, exist_ok=True)
    graphs = {os.path.basename(os.path.normpath(d)): read_texts(os.path.join(d, "nodes.jsonl.gz")) for d in args.data}
    texts = next(iter(graphs.values()))
    files = {
        "short": write(args.work, "short", [" ".join(t.split()[:12]) for t in texts[:1024]]),
        "128 tokens each": write(args.work, "long", [" ".join(texts[i : i + 40]) for i in range(0, min(len(texts), 5120), 40)]),
    }
    found = sides(args)
    print(f"{args.rounds} rounds of {args.seconds} s, load average before them {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs.\n")
    speed(found, files, args)
    print(f"\nLoad average after them {os.getloadavg()[0]:.1f}.")
    quality(found, graphs, args)


if __name__ == "__main__":
    main()
