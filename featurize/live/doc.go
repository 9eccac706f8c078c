// Package live keeps label features, label tree and targets up to date while
// the graph changes, so that labels newer than a generation have clusters before
// the next one is built.
//
// # Graph
//
// A Graph holds the projected text of every node, the edges, the PIFA sketch (featurize/pifa) and a
// Tree. Nodes are numbered like the labels of the tree that it began with, new ones from there on.
// A node arrives with Grow, gets a text with SetText and its edges with AddEdge, one call for each
// direction of an undirected edge. labeltree.Targets of Tree and Labels returns what the node is
// trained on. The package has an example.
//
// Edges may come before their nodes and stay when a node is deleted, as everywhere in giantstream;
// they count while both ends have a text.
//
// # Tree
//
// A Tree starts as the built labeltree.Tree. Place brings in a label, or
// follows one whose features changed; Remove takes one out.
//
//   - A new label goes down the hierarchy, a beam of the nearest clusters per
//     level, to the nearest leaf by cosine to the leaf's centroid. If that
//     leaf is full, a leaf with room that is as near within a small slack takes it;
//     else the nearest takes it and splits.
//   - A split is balanced 2-means of that leaf alone. The half nearer to the old
//     centroid keeps the number, the other gets a new one under the same parent,
//     whose fan-out grows by one.
//   - After a split, members of both halves and of their sibling leaves that are
//     nearer to another leaf with room move there: the reassignment of LIRE
//     (Xu et al., SPFresh, SOSP 2023). Moves never split, so they do not cascade.
//   - A label whose features have turned by more than a small angle since it
//     was placed is placed again. Smaller changes leave the tree as it is, which
//     makes most updates cheap.
//   - An empty leaf stays empty: nothing is routed to it and its number is not used again.
//
// # Invariants
//
// A label is in exactly one leaf if and only if it has features: an instance whose text is not
// empty of known n-grams. No leaf holds more than MaxLeafSize labels, whatever the order of
// changes. Numbers of clusters never change meaning: levels above the leaves keep theirs from the
// base tree, leaves only gain new ones. Every change of the tree raises its version by one, and
// Options.Observe gets it as one Event; the events replayed over the base tree give the same
// assignment. The same sequence of calls gives the same tree. Nothing here is safe for concurrent
// use.
//
// A tree that has grown far beyond its base becomes worse: inner levels are never split, so their
// fan-out grows with the leaves. The next generation builds a new tree; labeltree.Mapping says
// which clusters became which.
package live
