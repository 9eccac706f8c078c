package heads

import "slices"

// Report says how well a head predicts the classes of the test nodes.
type Report struct {
	Head       Kind `json:"head"`
	Dim        int  `json:"dim"`
	Train      int  `json:"train"`
	Validation int  `json:"validation"`
	Test       int  `json:"test"`
	// Accuracy is the share of the test nodes whose class was named.
	Accuracy float64 `json:"accuracy"`
	// MacroF1 is the mean of the F1 of the classes that occur in the test.
	MacroF1 float64 `json:"macro_f1"`
	// Majority is the accuracy of always naming the class that is commonest in the test.
	Majority float64 `json:"majority"`
	// ValidationAccuracy is that of the epoch whose weights were kept.
	ValidationAccuracy float64 `json:"validation_accuracy,omitempty"`
	// Best is the epoch (from 1) whose weights these are.
	Best    int           `json:"best_epoch"`
	Classes []ClassReport `json:"classes"`
	Curve   []Epoch       `json:"curve"`
}

// ClassReport is how one class did in the test.
type ClassReport struct {
	Class string `json:"class"`
	// Test is how many test nodes have the class.
	Test int `json:"test"`
	// Precision is the share of nodes of this class among the nodes predicted to have it, 0 if
	// there are none. Recall is the share of the class's nodes that were found, and F1 the harmonic
	// mean of both.
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// Epoch is one pass over the training nodes.
type Epoch struct {
	// Loss is the mean over the epoch's steps, in nats.
	Loss float64 `json:"loss"`
	// ValidationLoss and Accuracy are of the validation nodes after it.
	ValidationLoss float64 `json:"validation_loss,omitempty"`
	Accuracy       float64 `json:"validation_accuracy,omitempty"`
}

// score fills in what the predictions say: predicted[k] and truth[k] are
// classes, by number.
func (r *Report) score(names []string, predicted, truth []int32) {
	hit, said, is := make([]int, len(names)), make([]int, len(names)), make([]int, len(names))
	for k, c := range predicted {
		said[c]++
		is[truth[k]]++
		if c == truth[k] {
			hit[c]++
		}
	}
	r.Test, r.Classes = len(truth), make([]ClassReport, len(names))
	hits, occurring := 0, 0
	for c, name := range names {
		hits += hit[c]
		p := ClassReport{Class: name, Test: is[c], Precision: share(hit[c], said[c]), Recall: share(hit[c],
			is[c]), F1: share(2*hit[c], said[c]+is[c])}
		r.Classes[c] = p
		if is[c] > 0 {
			occurring++
			r.MacroF1 += p.F1
		}
	}
	r.Accuracy, r.Majority = share(hits, len(truth)), share(slices.Max(is), len(truth))
	if occurring > 0 {
		r.MacroF1 /= float64(occurring)
	}
}

// share returns part/whole, 0 of nothing.
func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
