package live

import (
	"slices"
	"testing"
)

// A console that is not told of the end of a stage says each minute that it goes on.
func TestDonePassesOn(t *testing.T) {
	var seen calls
	p := &New(Process{}, &seen).Progress
	p.Stage("finish", 0)
	p.Add(1)
	p.Done()
	if want := (calls{"stage finish", "add", "done"}); !slices.Equal(seen, want) {
		t.Errorf("the progress behind saw %q, want %q", seen, want)
	}
}

// calls are those that a progress got.
type calls []string

func (c *calls) Stage(name string, _ int64) { *c = append(*c, "stage "+name) }
func (c *calls) Add(int64)                  { *c = append(*c, "add") }
func (c *calls) Done()                      { *c = append(*c, "done") }
