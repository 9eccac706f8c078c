// Package giantstream is empty: giantstream is a program, cmd/giantstream, and offers no Go API.
// The module cannot be imported by others, so any name in it may change in any commit. What other
// software can rely on are topics, files (docs/format) and the --json output of the commands.
//
// Imports point down: cmd, ingest, stream, train, featurize, sink. Only cmd imports config.
package giantstream
