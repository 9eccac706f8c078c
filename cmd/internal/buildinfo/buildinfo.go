// Package buildinfo says which program this is, as the Go toolchain has recorded it.
package buildinfo

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Info identifies a build.
type Info struct {
	// Version of the module, "(devel)" for a build in a working tree without a tag.
	Version string `json:"version"`
	// Revision of the source, "" where the build did not know it; Modified: with changes.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// Time of the revision.
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// version and revision are set by the linker in releases (cmd/dev/release/build). What the toolchain would note there
// depends on how the source was checked out.
var version, revision string

// Read returns what is known of this program.
func Read() Info {
	i := Info{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return i
	}
	if v := cmp.Or(version, build.Main.Version); v != "" {
		i.Version = v
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Revision = s.Value
		case "vcs.modified":
			i.Modified = s.Value == "true"
		case "vcs.time":
			i.Time = s.Value
		}
	}
	i.Revision = cmp.Or(revision, i.Revision)
	return i
}

// String is one line.
func (i Info) String() string {
	s := "giantstream " + i.Version
	if i.Revision != "" {
		s += " revision " + i.Revision[:min(len(i.Revision), 12)]
	}
	if i.Modified {
		s += " with changes"
	}
	return fmt.Sprintf("%s, %s, %s", s, i.Go, i.Platform)
}
