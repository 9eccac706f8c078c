// Package evaluate has 'giantstream evaluate', which measures encoders on hidden edges and nodes, and its subcommands:
// heads trains classifiers on a generation's embeddings, and matcher predicts the neighbourhoods of hidden nodes.
package evaluate
