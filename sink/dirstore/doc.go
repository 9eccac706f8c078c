// Package dirstore keeps a sink.Store in a local directory: the object
// "shards/0/x" is the file shards/0/x below the root.
//
// Objects appear whole or not at all, also across a crash. Bytes are written to
// a temporary file in the object's own directory and synced; then Put renames
// the file over the name (atomic replacement) and Create links it to the name
// (link(2) fails if the name exists, so one of several racing processes wins),
// and the directory is synced.
//
// Temporary files start with '~', which no key can contain: a crash leaves at
// most such a file, which List ignores and which may be deleted at any time
// when no process writes to the store.
//
// Several processes of one machine may share a directory. A network file
// system may serve too if its link and rename are atomic; Probe checks the first.
package dirstore
