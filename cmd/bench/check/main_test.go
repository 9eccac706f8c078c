package main

import (
	"io"
	"testing"
)

func TestSlowerIsMoreThanFivePercentInEveryRound(t *testing.T) {
	for name, c := range map[string]struct {
		after [3]float64 // of 10 s before
		want  bool
	}{
		"as before":             {[3]float64{10, 10, 10}, false},
		"a little more":         {[3]float64{10.4, 10.4, 10.4}, false},
		"more":                  {[3]float64{10.6, 11, 10.2}, true},
		"more, but not once":    {[3]float64{9.9, 11, 12}, false},
		"less":                  {[3]float64{6, 7, 6}, false},
		"twice, by other work?": {[3]float64{10, 20, 10}, false},
	} {
		var measured [2][]usage
		for _, after := range c.after {
			measured[0] = append(measured[0], usage{time: 5, processor: 10, peak: 1})
			measured[1] = append(measured[1], usage{time: 50, processor: after, peak: 1})
		}
		if got := row(io.Discard, name, measured); got != c.want {
			t.Errorf("%s: slower: %t, want %t", name, got, c.want)
		}
	}
}
