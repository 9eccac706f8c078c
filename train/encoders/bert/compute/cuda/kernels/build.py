#!/usr/bin/env python3
"""Compiles the kernels with NVRTC: build.py SDK OUT

SDK is a folder with the unpacked wheels nvidia-cuda-nvrtc-cu11, nvidia-cuda-runtime-cu11 and
nvidia-cuda-nvcc-cu11. OUT gets sm_<nn>.cubin for each architecture and compute_80.ptx, each
compressed, and sources.sha256, which says what they were made of: NVRTC 11.8 gives equivalent images
for these sources, but not the same bytes every time. --limits prints what ptxas says of the registers, the
shared memory and the spills of each kernel, and fails if there are spills.
"""

import ctypes
import gzip
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

ARCHITECTURES = ["sm_70", "sm_75", "sm_80", "sm_90"]
# The driver compiles the PTX for every device that none of the cubins fits.
PTX = "compute_80"
OPTIONS = ["--fmad=false", "--std=c++14"]
HERE = pathlib.Path(__file__).resolve().parent


class Compiler:
    def __init__(self, sdk):
        nvidia = pathlib.Path(sdk) / "nvidia"
        folder = nvidia / "cuda_nvrtc" / "lib"
        self.includes = [HERE, nvidia / "cuda_runtime" / "include", nvidia / "cuda_nvcc" / "include"]  # mma.h is in both
        # NVRTC opens its builtins by name; loading them first makes the folder's own be found.
        ctypes.CDLL(str(next(folder.glob("libnvrtc-builtins.so.*"))), mode=ctypes.RTLD_GLOBAL)
        self.nvrtc = ctypes.CDLL(str(folder / "libnvrtc.so.11.2"))
        self.nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p

    def check(self, code, log=b""):
        if code != 0:
            sys.exit(f"nvrtc: {self.nvrtc.nvrtcGetErrorString(code).decode()}\n{log.decode()}")

    def output(self, program, what):
        size = ctypes.c_size_t()
        self.check(getattr(self.nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        data = ctypes.create_string_buffer(size.value)
        self.check(getattr(self.nvrtc, f"nvrtcGet{what}")(program, data))
        return data.raw

    def compile(self, architecture):
        """Returns the cubin for sm_<nn>, the PTX for compute_<nn>."""
        program = ctypes.c_void_p()
        source = (HERE / "kernels.cu").read_bytes()
        self.check(
            self.nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
        )
        options = [f"--gpu-architecture={architecture}", *(f"--include-path={i}" for i in self.includes), *OPTIONS]
        argv = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        code = self.nvrtc.nvrtcCompileProgram(program, len(options), argv)
        log = self.output(program, "ProgramLog").rstrip(b"\0")
        if log.strip():
            print(log.decode(), file=sys.stderr)
        self.check(code, log)
        what = "CUBIN" if architecture.startswith("sm_") else "PTX"
        data = self.output(program, what)
        self.nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return data


def digest():
    """Returns the SHA-256 of what images depend on: the sources, options and architectures."""
    h = hashlib.sha256()
    for path in sorted(p for p in HERE.iterdir() if p.suffix in (".cu", ".cuh")):
        h.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for line in pathlib.Path(__file__).read_text(encoding="utf-8").splitlines():
        if line.startswith(("ARCHITECTURES = ", "PTX = ", "OPTIONS = ")):
            h.update(line.encode() + b"\0")
    return h.hexdigest()


def limits(compiler, sdk):
    """Prints a Markdown table of what each kernel needs; returns how many bytes are spilt."""
    ptxas = pathlib.Path(sdk) / "nvidia" / "cuda_nvcc" / "bin" / "ptxas"
    ptxas.chmod(0o755)
    table, spilt = {}, 0
    shown = [70, 75, 80, 90]
    for number in shown:
        with tempfile.NamedTemporaryFile(suffix=".ptx") as f:
            f.write(compiler.compile(f"compute_{number}").rstrip(b"\0"))
            f.flush()
            out = subprocess.run(
                [str(ptxas), "-v", "--fmad=false", f"-arch=sm_{number}", "-o", "/dev/null", f.name],
                check=True, capture_output=True, text=True,
            ).stderr
        name = None
        for line in out.splitlines():
            if found := re.search(r"Compiling entry function '(\w+)'", line):
                name = found[1]
            if found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
                stack, spills = int(found[1]), int(found[2]) + int(found[3])
                spilt += spills
            if found := re.search(r"Used (\d+) registers", line):
                shared = re.search(r"(\d+) bytes smem", line)
                table.setdefault(name, {})[number] = (int(found[1]), stack, spills, int(shared[1]) if shared else 0)
    print("| kernel | " + " | ".join(f"registers, sm_{n}" for n in shown) + " | shared memory, bytes | stack, bytes | spills, bytes |")
    print("|---|" + "---:|" * (len(shown) + 3))
    for name in sorted(table):
        row = table[name]
        most = [max(of[i] for of in row.values()) for i in range(4)]
        print(f"| `{name}` | " + " | ".join(str(row[n][0]) if n in row else "-" for n in shown) + f" | {most[3]:,} | {most[1]} | {most[2]} |")
    return spilt


def main():
    arguments = [a for a in sys.argv[1:] if a != "--limits"]
    if len(arguments) < 1:
        sys.exit(__doc__)
    compiler = Compiler(arguments[0])
    if "--limits" in sys.argv:
        if spilt := limits(compiler, arguments[0]):
            sys.exit(f"{spilt} bytes are spilt")
        return
    if len(arguments) != 2:
        sys.exit(__doc__)
    out = pathlib.Path(arguments[1])
    out.mkdir(parents=True, exist_ok=True)
    for architecture in ARCHITECTURES:
        (out / f"{architecture}.cubin.gz").write_bytes(gzip.compress(compiler.compile(architecture), 9, mtime=0))
    (out / f"{PTX}.ptx.gz").write_bytes(gzip.compress(compiler.compile(PTX), 9, mtime=0))
    (out / "sources.sha256").write_text(digest() + "\n")


if __name__ == "__main__":
    main()
