"""Makes ONNX graphs of a BERT model from its safetensors file, for make bench-encode.

graph(model, fused) gives a model of the inputs ids (batch × tokens, int64) and lengths (batch, int32) and the output
embeddings (batch × width): the mean over a text's tokens, scaled to length 1. Fused graphs use ONNX Runtime's own
operators for attention, GELU and normalization, which its dynamic quantizer knows, too; the others use ONNX's alone.
"""

import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file


class Graph:
    def __init__(self):
        self.nodes, self.constants, self.count = [], {}, 0

    def constant(self, value, name=None):
        name = name or f"constant_{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(np.array(value, order="C"), name)
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        out = f"{kind}_{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=f"node_{out}", **attributes))
        return out


def graph(directory, fused):
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    weights = load_file(os.path.join(directory, "model.safetensors"))
    weights = {k.removeprefix("bert."): v.astype(np.float32) for k, v in weights.items()}
    g = Graph()
    hidden = embed(g, weights, config)
    mask = None if fused else padding(g)
    for i in range(config["num_hidden_layers"]):
        hidden = layer(g, weights, f"encoder.layer.{i}.", hidden, mask, config)
    pool(g, hidden)
    made = helper.make_graph(
        g.nodes, "bert",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "tokens"]),
         helper.make_tensor_value_info("lengths", TensorProto.INT32, ["batch"])],
        [helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["batch", config["hidden_size"]])],
        list(g.constants.values()))
    opsets = [helper.make_opsetid("", 20)] + ([helper.make_opsetid("com.microsoft", 1)] if fused else [])
    return helper.make_model(made, opset_imports=opsets, ir_version=9)


def embed(g, w, config):
    words = g.op("Gather", g.constant(w["embeddings.word_embeddings.weight"], "words"), "ids")
    tokens = g.op("Gather", g.op("Shape", "ids"), g.ints(1))
    places = g.op("Slice", g.constant(w["embeddings.position_embeddings.weight"]), g.ints(0), tokens, g.ints(0))
    types = g.constant(w["embeddings.token_type_embeddings.weight"][0])
    return norm(g, w, "embeddings.LayerNorm", g.op("Add", g.op("Add", words, places), types), config)


def norm(g, w, name, x, config):
    gain, bias = g.constant(w[name + ".weight"]), g.constant(w[name + ".bias"])
    return g.op("LayerNormalization", x, gain, bias, axis=-1, epsilon=config["layer_norm_eps"])


def linear(g, w, names, x):
    weight = np.concatenate([w[n + ".weight"] for n in names]).T
    bias = np.concatenate([w[n + ".bias"] for n in names])
    return g.op("Add", g.op("MatMul", x, g.constant(weight)), g.constant(bias))


def present(g):
    """1 for a token, 0 for padding: batch × tokens."""
    tokens = g.op("Squeeze", g.op("Gather", g.op("Shape", "ids"), g.ints(1)))
    places = g.op("Range", g.constant(np.int64(0)), tokens, g.constant(np.int64(1)))
    return g.op("Less", places, g.op("Unsqueeze", g.op("Cast", "lengths", to=TensorProto.INT64), g.ints(1)))


def padding(g):
    """What is added to scores: batch × 1 × 1 × tokens."""
    mask = g.op("Where", present(g), g.constant(np.float32(0)), g.constant(np.float32(-1e9)))
    return g.op("Unsqueeze", mask, g.ints(1, 2))


def layer(g, w, name, x, mask, config):
    heads, width = config["num_attention_heads"], config["hidden_size"]
    parts = [f"{name}attention.self.{p}" for p in ("query", "key", "value")]
    if mask is None:
        weight = g.constant(np.concatenate([w[p + ".weight"] for p in parts]).T)
        bias = g.constant(np.concatenate([w[p + ".bias"] for p in parts]))
        attended = g.op("Attention", x, weight, bias, "lengths", domain="com.microsoft", num_heads=heads)
    else:
        split = g.op("Reshape", linear(g, w, parts, x), g.ints(0, 0, 3, heads, width // heads))
        split = g.op("Transpose", split, perm=[2, 0, 3, 1, 4])
        q, k, v = (g.op("Gather", split, g.constant(np.int64(i)), axis=0) for i in range(3))
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.op("Mul", scores, g.constant(np.float32((width // heads) ** -0.5)))
        scores = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
        attended = g.op("Transpose", g.op("MatMul", scores, v), perm=[0, 2, 1, 3])
        attended = g.op("Reshape", attended, g.ints(0, 0, width))
    x = residual(g, w, [name + "attention.output.dense"], attended, x, name + "attention.output.LayerNorm", mask, config)
    if mask is None:
        weight = g.constant(w[name + "intermediate.dense.weight"].T)
        inner = g.op("BiasGelu", g.op("MatMul", x, weight), g.constant(w[name + "intermediate.dense.bias"]),
                     domain="com.microsoft")
    else:
        inner = g.op("Gelu", linear(g, w, [name + "intermediate.dense"], x))
    return residual(g, w, [name + "output.dense"], inner, x, name + "output.LayerNorm", mask, config)


def residual(g, w, dense, x, before, name, mask, config):
    if mask is not None:
        return norm(g, w, name, g.op("Add", linear(g, w, dense, x), before), config)
    product = g.op("MatMul", x, g.constant(w[dense[0] + ".weight"].T))
    return g.op("SkipLayerNormalization", product, before, g.constant(w[name + ".weight"]), g.constant(w[name + ".bias"]),
                g.constant(w[dense[0] + ".bias"]), domain="com.microsoft", epsilon=config["layer_norm_eps"])


def pool(g, hidden):
    weights = g.op("Unsqueeze", g.op("Cast", present(g), to=TensorProto.FLOAT), g.ints(2))
    total = g.op("ReduceSum", g.op("Mul", hidden, weights), g.ints(1), keepdims=0)
    length = g.op("ReduceL2", total, g.ints(1))
    g.nodes.append(helper.make_node("Div", [total, length], ["embeddings"], name="unit"))


def save(directory, fused, path):
    if not os.path.exists(path):
        onnx.save(graph(directory, fused), path + ".part")
        os.replace(path + ".part", path)
