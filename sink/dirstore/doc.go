// Package dirstore keeps a sink.Store in a local directory: the object "shards/0/x" is the file
// shards/0/x below the root.
//
// Objects appear whole or not at all, also across a crash. The bytes are written to a temporary
// file in the object's own directory and synced. Then Put renames the file over the object's name
// (atomic replacement), or Create links the file to the name (link(2) fails if the name exists, so
// one of several racing processes wins). Last, the directory is synced.
//
// Temporary files start with '~', which no key can contain. A crash leaves at most such a file.
// List ignores it, and it may be deleted at any time when no process writes to the store.
//
// Several processes of one machine may share a directory. A network file system may serve too if
// its link and rename are atomic; sink.Probe checks link.
package dirstore
