"""Trains PECOS's XR-Transformer on the problem that `xrt -export` has written.

Embeddings of all nodes go to a file, figures to standard output. Needs libpecos, torch and transformers, on Python 3.10
(libpecos by itself brings a transformers that refuses this torch):

    pip install libpecos==1.2.8 torch==2.2.2 transformers==4.36.2 'datasets<3' 'numpy<2' 'scipy<1.13' 'scikit-learn<1.5'
"""

import argparse
import json
import os
import resource
import time

import numpy as np
import scipy.sparse as sparse
import torch
from pecos.utils.featurization.text.vectorizers import Vectorizer
from pecos.xmc.xtransformer.model import XTransformer
from pecos.xmc.xtransformer.module import MLProblemWithText


def processor_time():
    return sum(u.ru_utime + u.ru_stime for u in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, help="folder with problem.json; embeddings go to pecos.embeddings in it")
    parser.add_argument("--model", required=True, help="folder of a BERT-family model")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=float, default=8, help="passes over the instances, of all levels together")
    parser.add_argument("--rate", type=float, default=1e-4, help="learning rate (PECOS's default)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)

    with open(os.path.join(args.work, "problem.json"), encoding="utf-8") as f:
        problem = json.load(f)
    texts, instances = problem["texts"], problem["instances"]
    index = np.array(problem["index"], dtype=np.int32)
    links = sparse.csr_matrix((np.ones(len(index), dtype=np.float32), index, np.array(problem["start"])), shape=(len(texts), len(texts)))
    began, used = time.time(), processor_time()
    # The features are those of GIANT's recipe. Only the tree is made from them.
    vectorizer = Vectorizer.train(texts, {"type": "tfidf", "kwargs": {"base_vect_configs": [
        {"ngram_range": [1, 2], "max_df_ratio": 0.98, "analyzer": "word", "buffer_size": 0, "threads": args.threads}]}}, dtype=np.float32)
    features = vectorizer.predict(texts, threads=args.threads)
    # A label that no instance has would have no features.
    linked = sparse.csr_matrix(links[instances])
    have = np.flatnonzero(linked.getnnz(axis=0))
    problem = MLProblemWithText([texts[i] for i in instances], sparse.csr_matrix(linked[:, have]), X_feat=sparse.csr_matrix(features[instances]))

    levels = 1  # the levels of the tree below: 32, 128, 512 clusters and the labels
    clusters = 32
    while clusters * 16 < len(have):
        levels, clusters = levels + 1, clusters * 4
    levels += 1
    steps = max(1, round(args.epochs * len(instances) / args.batch / levels))
    # The number of workers is not 0, because libpecos divides by it when it predicts.
    train = XTransformer.TrainParams.from_dict({
        "preliminary_indexer_params": {"__meta__": {"class_fullname": "pecos.xmc.base###HierarchicalKMeans.TrainParams"},
            "nr_splits": 4, "min_codes": 32, "max_leaf_size": 16, "spherical": True, "seed": args.seed, "threads": args.threads},
        "matcher_params_chain": {"__meta__": {"class_fullname": "pecos.xmc.xtransformer.matcher###TransformerMatcher.TrainParams"},
            "model_shortcut": args.model, "negative_sampling": "tfn", "batch_size": args.batch, "batch_gen_workers": 1, "max_steps": steps,
            "learning_rate": args.rate, "warmup_steps": steps // 10, "logging_steps": max(1, steps // 4), "save_steps": steps, "use_gpu": False},
        "only_encoder": True,
    }, recursive=True)
    predict = XTransformer.PredParams.from_dict({
        "matcher_params_chain": {"__meta__": {"class_fullname": "pecos.xmc.xtransformer.matcher###TransformerMatcher.PredParams"},
            "truncate_length": args.tokens},
    }, recursive=True)
    model = XTransformer.train(problem, train_params=train, pred_params=predict, threads=args.threads)
    took = {"seconds": time.time() - began, "cpu": processor_time() - used, "levels": levels, "steps of a level": steps,
        "peak MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    model.encode(texts, batch_size=args.batch, batch_gen_workers=1, use_gpu=False).astype("<f4").tofile(os.path.join(args.work, "pecos.embeddings"))
    print(json.dumps(took))


if __name__ == "__main__":
    main()
