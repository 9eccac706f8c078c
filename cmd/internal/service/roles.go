package service

import (
	"fmt"
	"strings"
)

// Roles are the parts of the work that a process does. Processes of a pipeline share nothing but
// Kafka and the store, so each role can have its own kind and number of machines.
type Roles struct {
	// Stream consumes the topics, keeps the graph of the shards that the group gives to this
	// process, and commits their windows.
	Stream bool
	// Refresh builds generations, in whichever process has the lease.
	Refresh bool
	// Embed publishes embeddings: of the shards that the process streams or, without that role, of
	// those that a second group gives to it.
	Embed bool
	// Build does tasks of builds that another process hands out (package taskqueue).
	Build bool
	// Serve answers over HTTP which nodes are similar, from all shards' embeddings in memory.
	Serve bool
}

// AllRoles is a process that keeps the pipeline going by itself. What it holds in memory does not grow with the
// catalog, as the index of Serve does, so that role is asked for by name.
func AllRoles() Roles { return Roles{Stream: true, Refresh: true, Embed: true} }

// ParseRoles reads a list such as "stream,embed".
func ParseRoles(list string) (Roles, error) {
	var r Roles
	for name := range strings.SplitSeq(list, ",") {
		switch strings.TrimSpace(name) {
		case "stream":
			r.Stream = true
		case "refresh":
			r.Refresh = true
		case "embed":
			r.Embed = true
		case "build":
			r.Build = true
		case "serve":
			r.Serve = true
		default:
			return Roles{}, fmt.Errorf(
				"%q is no role: use stream, refresh, embed, build and serve, separated by commas", name)
		}
	}
	return r, nil
}

// Complete reports whether a process with these roles needs no other.
func (r Roles) Complete() bool { return r.Stream && r.Refresh && r.Embed }

// String is a list that ParseRoles reads.
func (r Roles) String() string {
	var names []string
	for _, n := range []struct {
		name string
		has  bool
	}{{"stream", r.Stream}, {"refresh", r.Refresh}, {"embed", r.Embed}, {"build", r.Build}, {"serve", r.Serve}} {
		if n.has {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}
