// Package generation builds, stores and opens generations: one versioned set
// of vectorizer, projection, label tree, training set, encoder and embeddings,
// fitted on one cut of the graph.
//
// A Builder takes a generation through its stages in order:
//
//	cut → vectorizer → projection → tree → dataset → encoder → evaluation → embeddings
//
// Every stage writes its artifact whole or not at all under
// generations/<g>/ and is a pure function of the cut, the settings and the
// artifacts before it. A build that dies is therefore resumed by building
// again: stages whose artifact is there are loaded, the rest are run, and the
// outcome is the same as that of a build that was never disturbed.
//
// generation.json is written first, with status "building", the cut and the
// settings, and last, with status "ready" and the metrics; nobody serves a
// generation before that. Readers call Open and get what serving needs:
// features and targets for rows, embeddings for texts.
//
// # Memory
//
// What grows with the texts (the texts, Ψ of them, their projections) is kept
// in spools, which move from memory to temporary files above a share of
// Builder.MemoryLimit; every stage reads them record by record. The outcome
// does not depend on it. memory.go lists what stays in memory.
//
// Layout and fields: docs/format/generation.md. Method: Chien et al., ICLR
// 2022 (GIANT), sections 3 and 4.
package generation
