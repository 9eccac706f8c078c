// Package preview shows what records become before anything is sent or consumed: the first records of
// files or topics as they would be mapped, in how many of them each mapped field has a value, which
// ids of edges are ids of nodes, how long the texts are and in which scripts, and what would be a dead
// letter.
//
// New makes a collector, Files and Topic feed it, and Result gives the preview. Preview.Err is the
// check that `run` makes of its files: a mapped field that no record has is a mistake.
package preview
