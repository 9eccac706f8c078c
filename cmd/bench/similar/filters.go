package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/internal/parallel"
	"giantstream/train/answer/filter"
	"giantstream/train/nearest"
	"giantstream/train/numeric"
)

// Filters are measured on numbers that the vectors have: each is a permutation of 0 to n-1, so that number < share·n
// leaves that share. The first is drawn. Each other orders the vectors by how near they are to one of them, so that a
// filter on it leaves the surroundings of this one.
const (
	pivots   = 6
	perPivot = 20
)

// places are where those lie that match: anywhere; about the question; about what the question is far from, as when
// something is wanted of another category.
var places = []string{"anywhere", "near", "far"}

// shares are how much of the vectors a filter leaves.
var shares = []float64{1, 0.5, 0.1, 0.01, 0.001, 0.0001}

// filtered is a question with a filter, as asked.json has it.
type filtered struct {
	Place  int `json:"place"`
	Query  int `json:"query"`
	Column int `json:"column"`
	// Truth is by share.
	Truth [][]int32 `json:"truth"`
}

// writeFilters writes numbers.i32, a permutation for each column, and asked.json.
func writeFilters(dir string, vectors, asked []float32, dim int) error {
	n, queries := len(vectors)/dim, len(asked)/dim
	if queries < pivots*perPivot {
		return fmt.Errorf("%d queries are fewer than the %d that are asked about", queries, pivots*perPivot)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	numbers := make([]int32, 0, (1+pivots)*n)
	for _, i := range rng.Perm(n) {
		numbers = append(numbers, int32(i))
	}
	var questions []filtered
	for q := range pivots * perPivot {
		questions = append(questions, filtered{Place: 0, Query: q})
	}
	for p := range pivots {
		at := rng.IntN(n)
		pivot := vectors[at*dim : (at+1)*dim]
		column := make([]int32, n)
		for rank, i := range byNearness(vectors, pivot, dim) {
			column[i] = int32(rank)
		}
		numbers = append(numbers, column...)
		order := byNearness(asked, pivot, dim)
		for i := range perPivot {
			questions = append(questions, filtered{Place: 1, Query: int(order[i]), Column: 1 + p},
				filtered{Place: 2, Query: int(order[queries-1-i]), Column: 1 + p})
		}
	}
	parallel.ForEach(len(questions), 1, 0, func(_, _, lo, hi int) {
		for q := lo; q < hi; q++ {
			find(&questions[q], vectors, asked, numbers, dim)
		}
	})
	data, err := json.Marshal(questions)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "asked.json"), data, 0o644); err != nil {
		return err
	}
	return writeArray(dir, "numbers.i32", numbers)
}

// byNearness is the rows of vectors, the nearest to v first.
func byNearness(vectors, v []float32, dim int) []int32 {
	scores := make([]float32, len(vectors)/dim)
	numeric.Gemm(numeric.TransB, 1, len(scores), dim, v, vectors, scores)
	order := make([]int32, len(scores))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	return order
}

// find fills in the truth.
func find(q *filtered, vectors, asked []float32, numbers []int32, dim int) {
	n := len(vectors) / dim
	column := numbers[q.Column*n : (q.Column+1)*n]
	q.Truth = make([][]int32, len(shares))
	for _, i := range byNearness(vectors, asked[q.Query*dim:(q.Query+1)*dim], dim) {
		done := true
		for s, share := range shares {
			if len(q.Truth[s]) < k && float64(column[i]) < share*float64(n) {
				q.Truth[s] = append(q.Truth[s], i)
			}
			done = done && len(q.Truth[s]) == k
		}
		if done {
			return
		}
	}
}

// answered is how questions with a filter were answered, a line of JSON, as filters.py prints it, too.
type answered struct {
	Name   string  `json:"name"`
	Place  string  `json:"matches_lie"`
	Share  float64 `json:"share"`
	Recall float64 `json:"recall_at_10"` // of the nearest that match, by inner products in float32
	Fewest int     `json:"fewest"`       // answers of any question
	Rate   float64 `json:"questions_per_s"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	// Choosing is what part of the median is spent on finding those that match.
	Choosing float64 `json:"choosing_p50_ms"`
}

// measureFilters asks each question three times, and takes the shortest time: choosing those that match, and
// searching.
func measureFilters(x *nearest.Index, dir string, vectors, asked []float32, dim int) error {
	numbers, err := stage.ReadArray[int32](filepath.Join(dir, "numbers.i32"))
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(dir, "asked.json"))
	if err != nil {
		return err
	}
	var questions []filtered
	if err := json.Unmarshal(data, &questions); err != nil {
		return err
	}
	n := x.Len()
	table, err := tableOf(x, numbers, n)
	if err != nil {
		return err
	}
	runtime.GC() // of what made the table
	for p, place := range places {
		for s, share := range shares {
			r := answered{Name: "giantstream", Place: place, Share: share, Fewest: k}
			var took, choosing []float64
			wanted, hits := 0, 0
			for _, q := range questions {
				if q.Place != p {
					continue
				}
				only, err := filter.Parse(fmt.Sprintf("c%d<%g", q.Column, share*float64(n)))
				if err != nil {
					return err
				}
				query := asked[q.Query*dim : (q.Query+1)*dim]
				var found []nearest.Neighbour
				shortest, chosen := time.Hour, time.Hour
				for range 3 {
					began := time.Now()
					in, err := table.Select(only, x.Handles())
					if err != nil {
						return err
					}
					chosen = min(chosen, time.Since(began))
					found = x.Search(query, k, in, nil)
					shortest = min(shortest, time.Since(began))
				}
				took, choosing = append(took, 1e3*shortest.Seconds()), append(choosing, 1e3*chosen.Seconds())
				r.Fewest = min(r.Fewest, len(found))
				wanted += len(q.Truth[s])
				hits += countNearest(found, q.Truth[s], query, vectors)
			}
			r.Recall = float64(hits) / float64(wanted)
			for _, t := range took {
				r.Rate += t / 1e3 / float64(len(took))
			}
			r.Rate = 1 / r.Rate
			slices.Sort(took)
			slices.Sort(choosing)
			r.P50, r.P99 = took[len(took)/2], took[len(took)*99/100]
			r.Choosing = choosing[len(choosing)/2]
			if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// tableOf is the numbers as attributes, by the handles of the index.
func tableOf(x *nearest.Index, numbers []int32, n int) (*filter.Table, error) {
	var attributes []filter.Attribute
	for c := range 1 + pivots {
		attributes = append(attributes, filter.Attribute{Name: fmt.Sprintf("c%d", c), Type: filter.Number})
	}
	table := filter.NewTable(attributes)
	for i := range n {
		h, _ := x.Handle(strconv.Itoa(i))
		values := map[string]int32{}
		for c := range 1 + pivots {
			values[fmt.Sprintf("c%d", c)] = numbers[c*n+i]
		}
		data, err := json.Marshal(values)
		if err != nil {
			return nil, err
		}
		row, err := table.Decode(string(data))
		if err != nil {
			return nil, err
		}
		table.Set(h, row)
	}
	return table, nil
}
