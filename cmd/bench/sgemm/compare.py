#!/usr/bin/env python3
"""Times Sgemm of train/numeric/blas beside numpy's (OpenBLAS), on one thread each.

    cmd/bench/sgemm/compare.py [--rounds N] [--avx2 | --gonum]

The two sides alternate on every shape. Figures are medians of processor time, so
other work on the machine weighs little. Rows with m = 64 to 4096 are the linear
layers of MiniLM and BERT-base for m tokens; NT and TN are their backward products.
Both sides use the best kernels for the processor; with --avx2 both use AVX2. With
--gonum our side is gonum's Sgemm.
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

flags = argparse.ArgumentParser()
flags.add_argument("--rounds", type=int, default=7)
flags.add_argument("--avx2", action="store_true")
flags.add_argument("--gonum", action="store_true")
flags = flags.parse_args()

# OpenBLAS reads these when numpy loads it.
for name in [name for name in os.environ if name.startswith("OPENBLAS_")]:
    del os.environ[name]
os.environ["OPENBLAS_NUM_THREADS"] = "1"
if flags.avx2:
    os.environ["OPENBLAS_CORETYPE"] = "Haswell"
import numpy as np  # noqa: E402

LAYERS = [(384, 384), (384, 1152), (384, 1536), (1536, 384), (768, 768), (768, 2304), (768, 3072), (3072, 768)]
SHAPES = [(form, m, n, k) for k, n in LAYERS for form, m, n, k in (
    ("NN", 64, n, k), ("NN", 512, n, k), ("NN", 4096, n, k), ("NT", 512, k, n), ("TN", k, n, 512))]
SHAPES += [("NN", 128, 128, 32), ("NT", 128, 128, 32), ("NN", 128, 32, 128), ("TN", 128, 32, 128), ("NN", 37, 32, 37),
           ("NN", 1, 1536, 384), ("NN", 14, 1536, 384), ("NN", 20000, 256, 512), ("TN", 512, 512, 60000)]


def numpy_seconds(form, m, n, k, times):
    a = np.random.rand(m, k).astype(np.float32) if form[0] == "N" else np.random.rand(k, m).astype(np.float32).T
    b = np.random.rand(k, n).astype(np.float32) if form[1] == "N" else np.random.rand(n, k).astype(np.float32).T
    c = np.empty((m, n), np.float32)
    np.dot(a, b, out=c)
    start = time.process_time()
    for _ in range(times):
        np.dot(a, b, out=c)
    return (time.process_time() - start) / times


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "sgemm")
        subprocess.run(["go", "build", "-o", program, "."], cwd=here, check=True)
        ours = subprocess.Popen([program] + ["-gonum"] * flags.gonum, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env=dict(os.environ, GOMAXPROCS="1", GODEBUG="cpu.avx512f=off" if flags.avx2 else ""))
        print("| product | m × n × k | GFLOP/s | OpenBLAS | ratio |\n|---|---|---|---|---|")
        ratios = []
        for form, m, n, k in SHAPES:
            work = 2 * m * n * k
            times = max(1, int(2e9 / work))
            go, np_ = [], []
            for _ in range(flags.rounds):
                ours.stdin.write(f"{form} {m} {n} {k} {times}\n")
                ours.stdin.flush()
                go.append(float(ours.stdout.readline()))
                np_.append(numpy_seconds(form, m, n, k, times))
            g, o = statistics.median(go), statistics.median(np_)
            ratios.append(o / g)
            print(f"| {form} | {m} × {n} × {k} | {work / g / 1e9:.0f} | {work / o / 1e9:.0f} | {o / g:.2f} |", flush=True)
        ours.stdin.close()
        ours.wait()
        print(f"\nmedian ratio {statistics.median(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
