package train

// OrDiscard returns p, or a Progress that discards if p is nil.
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

type discard struct{}

func (discard) Stage(string, int64) {}
func (discard) Add(int64)           {}
