package labeltree

import (
	"io"
	"math"

	"giantstream/internal/artifact"
)

// Format: docs/format/tree.md.
const (
	magic   = "GSTREE\x00\x00"
	version = 2
	// In version 1 the levels were powers of two; all else is the same.
	version1 = 1
)

// Write writes the tree as an artifact.
func (t *Tree) Write(w io.Writer) error {
	a := artifact.NewWriter(w, magic, version)
	levels := make([]int32, len(t.levels))
	for i, k := range t.levels {
		levels[i] = int32(k)
	}
	a.Int32s(levels)
	a.Int32s(t.leafOf)
	return a.Close()
}

// Read reads a tree artifact. The error is artifact.ErrCorrupt or
// artifact.ErrUnknown when the bytes are to blame.
func Read(r io.Reader) (*Tree, error) {
	a, err := artifact.NewReader(r, magic, version1, version)
	if err != nil {
		return nil, err
	}
	var levels []int
	last := 0
	for _, k := range a.Int32s("levels", maxLevels) {
		if !follows(int(k), last) {
			a.Fail("a level of %d clusters after one of %d", k, last)
			break
		}
		last = int(k)
		levels = append(levels, last)
	}
	leafOf := a.Int32s("leaves of labels", math.MaxInt32)
	if last == 0 || last > len(leafOf) {
		a.Fail("%d leaves for %d labels", last, len(leafOf))
	}
	for label, leaf := range leafOf {
		if leaf < -1 || int(leaf) >= last {
			a.Fail("label %d is in leaf %d of %d", label, leaf, last)
			break
		}
	}
	if err := a.Close(); err != nil {
		return nil, err
	}
	return newTree(levels, leafOf), nil
}
