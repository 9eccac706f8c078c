package ambient

// Progress receives how far long work has come. Implementations must be cheap
// and safe for concurrent use; a nil Progress is replaced by one that discards.
type Progress interface {
	// Stage begins a stage of total units (0: unknown) and ends the last one.
	Stage(name string, total int64)
	Add(n int64)
}

// OrDiscard returns p, one that discards for nil.
func OrDiscard(p Progress) Progress {
	if p == nil {
		return discard{}
	}
	return p
}

type discard struct{}

func (discard) Stage(string, int64) {}
func (discard) Add(int64)           {}
