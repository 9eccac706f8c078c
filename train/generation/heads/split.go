package heads

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"giantstream/train/numeric"
)

// ErrSplit: a split does not leave enough nodes to train on and to test.
var ErrSplit = errors.New("the split leaves nothing to train on or to test; " +
	"give a class to more nodes or choose other shares")

// Split says which nodes a head learns from (Train), which stop its training
// (Validation, may be empty) and which it is judged on (Test). Nodes are
// positions, each in one part at most.
type Split struct {
	Train, Validation, Test []int32
}

// ByRate draws the given shares of every class's nodes for training and
// validation, the rest is for the test; every class with two nodes or more has at least one
// in training. Nodes without class ("") take no part.
func ByRate(classes []string, training, validation float64, seed uint64) (Split, error) {
	if err := checkShares(training, validation); err != nil {
		return Split{}, err
	}
	members := map[string][]int32{}
	for i, c := range classes {
		if c != "" {
			members[c] = append(members[c], int32(i))
		}
	}
	var s Split
	for class, nodes := range members {
		r := numeric.NewRand(seed, numeric.HashString(class))
		r.Shuffle(nodes)
		t := int(math.Round(training * float64(len(nodes))))
		if t == 0 && len(nodes) > 1 {
			t = 1
		}
		v := min(t+int(math.Round(validation*float64(len(nodes)))), len(nodes))
		s.Train = append(s.Train, nodes[:t]...)
		s.Validation = append(s.Validation, nodes[t:v]...)
		s.Test = append(s.Test, nodes[v:]...)
	}
	return s.sorted()
}

// ByTime trains on the given share of the nodes that have a class, those with the earliest times.
// The next share validates, and the latest nodes are the test. Position decides between nodes of
// equal time.
func ByTime(classes []string, times []time.Time, training, validation float64) (Split, error) {
	if err := checkShares(training, validation); err != nil {
		return Split{}, err
	}
	if len(times) != len(classes) {
		return Split{}, fmt.Errorf("split by time: %d times of %d nodes", len(times), len(classes))
	}
	var nodes []int32
	for i, c := range classes {
		if c != "" {
			nodes = append(nodes, int32(i))
		}
	}
	slices.SortStableFunc(nodes, func(a, b int32) int { return times[a].Compare(times[b]) })
	n := float64(len(nodes))
	t := int(math.Round(training * n))
	v := min(int(math.Round((training+validation)*n)), len(nodes))
	return Split{nodes[:t:t], nodes[t:v:v], nodes[v:]}.sorted()
}

// checkShares refuses shares that leave no part of the nodes for the test.
func checkShares(training, validation float64) error {
	// NaN fails both comparisons.
	if !(training > 0 && validation >= 0 && training+validation < 1) {
		return fmt.Errorf("split: shares of %v for training and %v for validation must be positive "+
			"and leave a rest for the test", training, validation)
	}
	return nil
}

// sorted puts every part in ascending order and refuses a split without use.
func (s Split) sorted() (Split, error) {
	for _, part := range [][]int32{s.Train, s.Validation, s.Test} {
		slices.SortFunc(part, cmp.Compare[int32])
	}
	if len(s.Train) == 0 || len(s.Test) == 0 {
		return s, fmt.Errorf("%w: %d nodes to train on, %d for validation, %d to test",
			ErrSplit, len(s.Train), len(s.Validation), len(s.Test))
	}
	return s, nil
}

// check returns an error unless the parts are disjoint and have only nodes with a class.
func (s Split) check(classes []string) error {
	if _, err := s.sorted(); err != nil {
		return err
	}
	seen := make([]bool, len(classes))
	for _, part := range [][]int32{s.Train, s.Validation, s.Test} {
		for _, i := range part {
			switch {
			case i < 0 || int(i) >= len(classes):
				return fmt.Errorf("split: node %d of %d", i, len(classes))
			case classes[i] == "":
				return fmt.Errorf("split: node %d has no class", i)
			case seen[i]:
				return fmt.Errorf("split: node %d is in two parts", i)
			}
			seen[i] = true
		}
	}
	return nil
}
