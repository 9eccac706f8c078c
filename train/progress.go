package train

import "giantstream/internal/ambient"

// Progress receives how far a training has come.
type Progress = ambient.Progress

// OrDiscard returns p, or a Progress that discards if p is nil.
func OrDiscard(p Progress) Progress { return ambient.OrDiscard(p) }

// Note shows a few words on the running stage beside its progress, if p has a method Note.
func Note(p Progress, words string) {
	if n, can := p.(interface{ Note(words string) }); can {
		n.Note(words)
	}
}
