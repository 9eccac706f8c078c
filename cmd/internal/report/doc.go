// Package report draws a generation as one HTML page that needs nothing else: no font, no
// picture, no script from elsewhere, so that it can be mailed, kept with a model, or opened on a machine
// without a network.
//
// [Write] writes it from an [Input]. The page shows the generation's input and settings, its training, label tree,
// map, nearest neighbours and evaluation, what has changed since the generation before, and the figures of all
// generations. It says more of the nodes of Input.Nodes.
//
// # What is read
//
// Of the store: generation.json, the tree with its terms (the training set), the vectorizer and
// projection, and the embeddings, twice. Of the source, the cut that the generation was fitted on:
// every row, twice. Only the text-only baseline is encoded again, so the page of a transformer's
// generation costs no more than another's. Memory: the artifacts, the training set's features (for
// the terms), and the sample of the map.
//
// # The map
//
// A sample of 2,000 nodes is laid out twice, by package nodemap.
//
// # Trust
//
// Ids, texts, classes and terms come from users; html/template escapes them, and the page's content
// security policy forbids all loading, and all scripts but one of this package (search.js), which finds
// nodes among those of the map. Without it, the page lacks the search and nothing else.
//
// The page is a function of the generation and the cut: the same bytes at every run.
package report
