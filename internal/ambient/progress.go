package ambient

// Progress receives how far long work has come. Implementations must be cheap
// and safe for concurrent use.
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

// Note shows a few words on the running stage beside its progress, if p has a method Note.
func Note(p Progress, words string) {
	if n, can := p.(interface{ Note(words string) }); can {
		n.Note(words)
	}
}

// Done ends the running stage, if p has a method Done.
func Done(p Progress) {
	if d, can := p.(interface{ Done() }); can {
		d.Done()
	}
}

type discard struct{}

func (discard) Stage(string, int64) {}
func (discard) Add(int64)           {}
