// Package generation builds, stores and opens generations: one versioned set
// of vectorizer, projection, label tree, training set, encoder and embeddings,
// fitted on one cut of the graph.
//
// A Builder takes a generation through its stages in order:
//
//	cut → vectorizer → projection → tree → dataset → encoder → evaluation → embeddings
//
// Package fit has the stages as functions; this package reads the cut, keeps the stages' artifacts
// in the store, resumes builds and serves. Package study compares encoders without a store.
//
// Every stage writes its artifact whole or not at all under generations/<g>/. It is a pure function
// of the cut, the settings and the artifacts before it. A build that dies is therefore resumed by
// building again: stages whose artifact is in the store are loaded, the others are run, and the
// outcome is that of an uninterrupted build.
//
// generation.json is written first, with status "building", the cut and the settings, and last,
// with status "ready" and the metrics. No reader serves a generation before that. Readers call Open
// and get what serving needs: features and targets for rows, embeddings for texts.
//
// # Memory
//
// What grows with the texts (the texts, Ψ of them, their projections) is kept in spools, which move
// from memory to temporary files above a share of Builder.MemoryLimit. The outcome does not depend
// on it. memory.go lists what stays in memory.
//
// Layout and fields: docs/format/generation.md. Method: Chien et al., ICLR
// 2022 (GIANT), sections 3 and 4.
package generation
