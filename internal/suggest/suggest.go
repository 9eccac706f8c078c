// Package suggest finds what somebody may have meant by a name that does not exist.
package suggest

import "strings"

// Nearest returns the name that is most like word, "" if none is: by the number of letters to insert,
// remove, replace or swap, at most a third of the word's, or as a part of the other. Of equals it
// returns the first.
func Nearest(word string, names []string) string {
	best, least := "", max(1, (len(word)+1)/3)+1
	w := strings.ToLower(word)
	for _, name := range names {
		n := strings.ToLower(name)
		if d := distance(w, n); d < least {
			best, least = name, d
		}
	}
	if best != "" || len(word) < 3 {
		return best
	}
	for _, name := range names {
		n := strings.ToLower(name)
		if len(n) >= 3 && (strings.Contains(n, w) || strings.Contains(w, n)) {
			return name
		}
	}
	return ""
}

// distance is the optimal string alignment distance of two words, in bytes.
func distance(a, b string) int {
	const most = 200 // of each; longer ones are no typing mistakes of one another
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
