"""Encodes texts with ONNX Runtime or OpenVINO: the other half of make bench-encode.

It does what cmd/bench/bert does in its mode encode, in these programs' best way: texts sorted by length and padded to
the longest of a batch, all optimizations of the graph, as many threads as are given, tokens from the tokenizers library.
Padding does not count as tokens.
"""

import argparse
import json
import os
import resource
import time

import numpy as np
from tokenizers import Tokenizer

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--engine", choices=["ort", "ort-int8", "openvino"], required=True)
parser.add_argument("--model", required=True, help="directory of the model")
parser.add_argument("--graph", required=True, help="ONNX file for this engine")
parser.add_argument("--texts", required=True)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--length", type=int, default=128)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--embeddings", help="file for the embeddings; nothing is timed")
args = parser.parse_args()


def runtime():
    if args.engine == "openvino":
        import openvino

        settings = {"INFERENCE_NUM_THREADS": args.threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        compiled = openvino.Core().compile_model(args.graph, "CPU", settings)
        request = compiled.create_infer_request()
        return lambda ids, lengths: request.infer({"ids": ids, "lengths": lengths})[0]
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = args.threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(args.graph, options, providers=["CPUExecutionProvider"])
    return lambda ids, lengths: session.run(None, {"ids": ids, "lengths": lengths})[0]


def peak_mib():
    """The peak of this program: ru_maxrss would also know of the one that started it."""
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) / 1024


with open(args.texts, encoding="utf-8") as f:
    texts = f.read().splitlines()
tokenizer = Tokenizer.from_file(os.path.join(args.model, "tokenizer.json"))
tokenizer.no_padding()
tokenizer.enable_truncation(args.length)
infer = runtime()


def encode(texts):
    tokens = [e.ids for e in tokenizer.encode_batch(texts)]
    order = sorted(range(len(tokens)), key=lambda i: -len(tokens[i]))
    out = None
    for at in range(0, len(order), args.batch):
        part = order[at : at + args.batch]
        lengths = np.array([len(tokens[i]) for i in part], np.int32)
        ids = np.zeros((len(part), lengths.max()), np.int64)
        for row, i in enumerate(part):
            ids[row, : lengths[row]] = tokens[i]
        vectors = infer(ids, lengths)
        if out is None:
            out = np.empty((len(tokens), vectors.shape[1]), np.float32)
        out[part] = vectors
    return out, sum(map(len, tokens))


if args.embeddings:
    encode(texts)[0].astype("<f4").tofile(args.embeddings)
    print(json.dumps({}))
else:
    encode(texts[:64])  # not counted
    before = resource.getrusage(resource.RUSAGE_SELF)
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < args.seconds:
        done += encode(texts)[1]
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"tokens": done, "seconds": seconds, "cpu": cpu, "peak_mib": peak_mib()}))
