#!/usr/bin/env python3
"""Plants mistakes in the kernels, one at a time, and counts those that the tests find:

    mutate.py SDK TEST [NUMBER...]

TEST is the test binary of package cuda (go test -c -tags cuda), SDK as in driver/build. Fails if a
mistake is overlooked, or if the tests fail without one. With numbers, only those mistakes.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = HERE.parent / "kernels"

# file, what is written there, what takes its place; the first such place in the file counts.
MISTAKES = [
    # Barriers.
    ("product.cu", "    __syncthreads();\n    int turn", "    int turn"),
    ("product.cu", "        }\n        __syncthreads();\n    }\n", "        }\n    }\n"),
    ("attention.cu", "        put<S>(scores, x, l);\n        __syncthreads();\n", "        put<S>(scores, x, l);\n"),
    ("attention.cu", "        accumulate<S>(sums, scores, keys, l);\n        __syncthreads();\n",
     "        accumulate<S>(sums, scores, keys, l);\n"),
    ("rows.cu", "    part[lane][threadIdx.x % COLUMNS] = sum;\n    __syncthreads();\n",
     "    part[lane][threadIdx.x % COLUMNS] = sum;\n"),
    ("rows.cu", "    }\n    __syncthreads();\n\n    for (int j = threadIdx.x;", "    }\n\n    for (int j = threadIdx.x;"),
    ("elements.cu", "        __syncthreads();\n        if (threadIdx.x < (unsigned)half)",
     "        if (threadIdx.x < (unsigned)half)"),
    ("elements.cu", "    __syncthreads();\n    const u64 i", "    const u64 i"),
    # Bounds.
    ("product.cu", "if (r >= m) {", "if (r > m) {"),
    ("product.cuh", "v.z = at + 2 < end ? row[at + 2] : 0.0f;", "v.z = row[at + 2];"),
    ("attention.cu", "r < rows && j < width ? x", "j < width ? x"),
    ("attention.cu", "key + i < n ? score[i] * scale", "key + i <= n ? score[i] * scale"),
    ("rows.cu", "if (row >= (size_t)rows) {", "if (row > (size_t)rows) {"),
    ("rows.cu", "end = min(first + chunk, rows);", "end = first + chunk;"),
    ("elements.cu", "    if (i < n) {\n        out[i]", "    if (i <= n) {\n        out[i]"),
    ("elements.cu", "end = min(first + SQUARES, n);", "end = first + SQUARES;"),
    # Indices.
    ("product.cu", "const int r = row + y + p / 4 * APART + p % 4;", "const int r = row + y + p;"),
    ("attention.cu", "((u64)head * n + q) * n + k", "((u64)head * n + k) * n + q"),
    ("attention.cu", "dqkv[s.key(r) + j] = of_key[p][i];", "dqkv[s.key(r) + j] = of_value[p][i];"),
    ("attention.cu", "m.sum = fmaf(m.sum, shrink,", "m.sum = fmaf(m.sum, 1.0f,"),
    ("rows.cu", "x[(size_t)order[i] * width + j];", "x[(size_t)i * width + j];"),
    ("rows.cu", "for (int i = 1; i < LANES; i++) {", "for (int i = 1; i < LANES - 1; i++) {"),
    ("elements.cu", "if (i % 4 == 0) {", "if (i % 4 == 1) {"),
    ("common.cuh", "offset = WARP / 2; offset > 0;", "offset = WARP / 2; offset > 1;"),
    # Atomic in effect only: two groups, or two blocks, add to the same place.
    ("rows.cu", "float *to = out + (size_t)blockIdx.y * columns + column;", "float *to = out + column;"),
    # Vectors at addresses that are no multiples of their size.
    ("product.cu", "static constexpr int STRIDE = SIZE + 4;", "static constexpr int STRIDE = SIZE + 2;"),
    ("product.cu", "(A == INNER ? k : m) % 4 == 0", "(A == INNER ? k : m) % 2 == 0"),
    ("attention.cu", "STRIDE = TILE + 4;", "STRIDE = TILE + 3;"),
    # Tensor cores.
    ("tensor.cu", "    __syncthreads();\n    int turn", "    int turn"),
    ("tensor.cu", "        }\n        __syncthreads();\n    }\n\n    // Which", "        }\n    }\n\n    // Which"),
    ("tensor.cu", "        __syncthreads();\n        for (int i = lane", "        for (int i = lane"),
    ("tensor.cu", "            }\n        }\n        __syncthreads();\n    }\n}\n", "            }\n        }\n    }\n}\n"),
    ("tensor.cu", "if (row < rows) {", "if (row <= rows) {"),
    ("tensor.cu", "SlabA::fragment(at, y + p * EDGE, i)", "SlabA::fragment(at, y, i)"),
    ("tensor.cu", "x + q * EDGE, i)", "x + q * EDGE, 0)"),
    ("tensor.cu", "Order<wmma::matrix_b, INNER> { typedef wmma::col_major", "Order<wmma::matrix_b, INNER> { typedef wmma::row_major"),
    ("tensor.cu", "wmma::__float_to_tf32(v.y)", "v.y"),
    ("tensor.cu", "__floats2bfloat162_rn(v.z, v.w)", "__floats2bfloat162_rn(v.w, v.z)"),
    ("tensor.cu", "STRIDE = FAST + 16 / sizeof(Number)", "STRIDE = FAST + 8 / sizeof(Number)"),
]


def caught(sdk, test, kernels, out):
    """Reports whether the tests fail with a driver of these kernels, and how."""
    subprocess.run([str(HERE / "driver" / "build"), sdk, str(out), str(kernels)], check=True, capture_output=True)
    for order in "012":
        run = subprocess.run(
            [test, "-test.run", "TestBackend|TestMath|TestSizes|TestTileDoesNotChangeBits", "-test.timeout", "300s"],
            env={**os.environ, "LD_LIBRARY_PATH": str(out), "GIANTSTREAM_EMULATED_ORDER": order},
            capture_output=True, text=True, errors="replace", cwd=HERE.parent, check=False,
        )
        if run.returncode != 0:
            said = [l.strip() for l in run.stderr.splitlines() + run.stdout.splitlines() if l.strip()]
            return next((l for l in said if l.startswith("emulated device")), "a wrong number")
    return None


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sdk, test = sys.argv[1], os.path.abspath(sys.argv[2])
    chosen = [int(n) for n in sys.argv[3:]] or range(len(MISTAKES))
    overlooked = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if not sys.argv[3:] and (how := caught(sdk, test, KERNELS, folder / "right")):
            sys.exit(f"the tests fail without a mistake: {how}")
        for n in chosen:
            file, old, new = MISTAKES[n]
            kernels = folder / f"kernels{n}"
            shutil.copytree(KERNELS, kernels)
            source = (kernels / file).read_text(encoding="utf-8")
            if old not in source:
                sys.exit(f"{n}: {file} has no {old!r} any more: mend the list of mistakes")
            (kernels / file).write_text(source.replace(old, new, 1), encoding="utf-8")
            how = caught(sdk, test, kernels, folder / f"driver{n}")
            overlooked += how is None
            print(f"{n:3} {file:13} {'OVERLOOKED' if how is None else how}", flush=True)
    print(f"{len(chosen) - overlooked} of {len(chosen)} mistakes are found")
    sys.exit(overlooked > 0)


if __name__ == "__main__":
    main()
