package sim

import (
	"fmt"
	"io"
)

// Total sums up the results of many seeds and says how far they are.
type Total struct {
	out   io.Writer
	of    int
	seeds int
	Result
}

func newTotal(of int, out io.Writer) *Total { return &Total{out: out, of: of} }

// progressEvery is how many seeds there are to a line of progress.
const progressEvery = 100

// begin says which seed is next: the process may not survive it.
func (t *Total) begin(seed uint64) {
	if t.seeds%progressEvery == 0 {
		fmt.Fprintf(t.out, "simulating seed %d: %d of %d are done\n", seed, t.seeds, t.of)
	}
	t.seeds++
}

func (t *Total) add(r *Result) {
	t.Events += r.Events
	t.Manifests += r.Manifests
	t.Checkpoints += r.Checkpoints
	t.Blocks += r.Blocks
	t.Generations += r.Generations
	t.Kills += r.Kills
	t.Late += r.Late
	t.Excused += r.Excused
	t.Folds += r.Folds
	t.Fakes += r.Fakes
}

// report says what the seeds were made of.
func (t *Total) report() {
	fmt.Fprintf(t.out, "%d seeds: %d calls and events, %d manifests, %d checkpoints, %d merged blocks, "+
		"%d generations, %d processes killed, %d late writes under a lost lease; "+
		"%d nodes excused on the sink topic; %d moves of a boundary, %d manifests created behind one\n",
		t.seeds, t.Events,
		t.Manifests, t.Checkpoints, t.Blocks, t.Generations, t.Kills, t.Late, t.Excused, t.Folds, t.Fakes)
}
