package xrlinear

import (
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/train/objectives/xmc"
)

// evaluated is the number of predictions for each instance, and of clusters that each level passes
// on.
const evaluated = 10

// Evaluate predicts the clusters of each level, and finally the labels, of instances that were not
// trained on. x and y are as in Train, with a row for each instance. Instances without a label at a
// level are left out there.
func (m *Model) Evaluate(x, y *sparse.Matrix, tree Tree, workers int) ([]xmc.LevelMetrics, error) {
	if err := check(x, y, tree); err != nil {
		return nil, err
	}
	levels, _ := pose(y, tree)
	rows := make([][]xmc.LevelMetrics, len(levels)) // of one instance each
	for t := range rows {
		rows[t] = make([]xmc.LevelMetrics, x.Rows)
	}
	m.searchAll(x, len(levels), evaluated, evaluated, workers, func(t, i int, best []node) {
		if truth := levels[t].y.Row(i).Index; len(truth) > 0 {
			rows[t][i] = metrics(best, truth)
		}
	})
	out := make([]xmc.LevelMetrics, len(levels))
	for t := range levels {
		out[t] = mean(rows[t], levels[t].y)
		out[t].Clusters = levels[t].nodes()
	}
	return out, nil
}

// metrics compares predictions, best first, with what is true.
func metrics(best []node, truth []int32) (r xmc.LevelMetrics) {
	hits := 0.0
	for rank, n := range best {
		if _, hit := slices.BinarySearch(truth, n.id); !hit {
			continue
		}
		hits++
		if rank < 1 {
			r.P1++
		}
		if rank < 3 {
			r.P3 += 1. / 3
		}
		if rank < 5 {
			r.P5 += 1. / 5
		}
	}
	r.Recall10 = hits / float64(len(truth))
	return r
}

func mean(rows []xmc.LevelMetrics, truth *sparse.Matrix) (m xmc.LevelMetrics) {
	counted := 0.0
	for i, r := range rows {
		if len(truth.Row(i).Index) == 0 {
			continue
		}
		counted++
		m.P1, m.P3, m.P5, m.Recall10 = m.P1+r.P1, m.P3+r.P3, m.P5+r.P5, m.Recall10+r.Recall10
	}
	if counted > 0 {
		m.P1, m.P3, m.P5, m.Recall10 = m.P1/counted, m.P3/counted, m.P5/counted, m.Recall10/counted
	}
	return m
}
