// Package graph has the stages that make a graph of the commit log. Scatter deals rows out to partitions, Number keeps
// the newest row of each node, in the order of (hash of the id, id), and Index adds up: a node's position is its number
// in that order. Resolve looks the ends of links up, LinkNodes collects the neighbours of each node.
//
// Later stages read nodes, texts and neighbours block by block through EachNode, EachTextBlock and EachNeighbours, and
// outputs of their own, one record for each node, through EachBlock.
package graph
