package live

import "fmt"

// EventKind says what happened to a tree.
type EventKind uint8

const (
	// Added: Label entered leaf To.
	Added EventKind = iota + 1
	// Moved: Label went from leaf From to leaf To.
	Moved
	// Removed: Label left leaf From.
	Removed
	// Split: leaf To, new and empty, was added beside From under the same parent. The labels that
	// it takes over follow as Moved. From is -1 for the first leaf of a tree whose labels have all
	// left.
	Split
)

func (k EventKind) String() string {
	switch k {
	case Added:
		return "added"
	case Moved:
		return "moved"
	case Removed:
		return "removed"
	case Split:
		return "split"
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// Event is one change of a Tree.
type Event struct {
	// Version of the tree after the change; the base tree is version 0.
	Version int64
	Kind    EventKind
	Label   int32 // -1 for Split
	// From and To are leaves, -1 where there is none.
	From, To int32
}
