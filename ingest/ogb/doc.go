// Package ogb reads the raw downloads of three data sets of the Open Graph Benchmark (Hu et al., 2020) that the GIANT
// paper reports on, and writes them as the files that a pipeline ingests: nodes.jsonl.zst, edges.jsonl.zst and the
// official split.csv, which `evaluate heads --split` reads.
//
// Import is the one entry. A node's id is its index in OGB, "0" to n-1; a second field keeps its name in OGB's
// mapping (paper_id, asin). Its class is the number of OGB's label, and missing where OGB has none. The text is title
// and abstract, or title and description, of the files that the benchmark's pages link to:
//
//	            graph, labels, split        names                        texts
//	arxiv       raw/*.csv.gz, split/time    mapping/nodeidx2paperid      titleabs.tsv
//	products    raw/*.csv.gz,               mapping/nodeidx2asin         Amazon-3M.raw/trn.json, tst.json
//	            split/sales_ranking
//	papers100M  raw/data.npz,               mapping/nodeidx2paperid      paperinfo/idx_title.tsv, idx_abs.tsv
//	            raw/node-label.npz,
//	            split/time
//
// Every file may be there with or without .gz. Node features (node-feat) are not read: making them is what this
// program is for.
//
// # Memory
//
// Texts come in any order. Import spreads them over files of 262,144 nodes each in a temporary folder beside the
// output, which takes the disk space of the texts, and reads back one file at a time. Memory also holds 12 bytes a
// node where texts are keyed by paper, and the ASINs of products. Edges stream through.
package ogb
