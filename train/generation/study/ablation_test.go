package study

import (
	"reflect"
	"testing"

	"giantstream/train/encoders/bert"
	"giantstream/train/generation/fit"
)

func ablate(t *testing.T, o Options, nodes int, seeds ...uint64) *Ablation {
	t.Helper()
	a, err := Ablate(t.Context(), o, graphOf(nodes), seeds)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func rowsOf(a *Ablation) (rows [][2]string) {
	for _, r := range a.Rows {
		rows = append(rows, [2]string{r.Row, r.Encoder})
	}
	return rows
}

func TestAblationHasThePapersRows(t *testing.T) {
	o := options(t)
	o.Settings.Encoder, o.Settings.Epochs, o.Settings.Holdout = "bag", 2, 0.1
	a := ablate(t, o, 400, 1, 2)
	want := [][2]string{
		{"text", "lsa"}, {"link prediction", "bag"}, {"neighbourhoods, random", "bag"}, {"neighbourhoods, text", "bag"},
		{"neighbourhoods, pifa-identity", "bag"}, {"neighbourhoods, pifa", "bag"},
	}
	if got := rowsOf(a); !reflect.DeepEqual(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	for _, r := range a.Rows {
		if len(r.Runs) != 2 || len(r.Seconds) != 2 {
			t.Errorf("%s: %d runs, %d times; want two", r.Row, len(r.Runs), len(r.Seconds))
			continue
		}
		for _, run := range r.Runs {
			if run.Links == nil || run.Links.Edges == 0 || run.Links.AUC < 0.8 {
				t.Errorf("%s: evaluation %+v", r.Row, run)
			}
		}
		if reflect.DeepEqual(r.Runs[0].Links, r.Runs[1].Links) {
			t.Errorf("%s: two seeds give the same figures", r.Row)
		}
	}

	o.Resources.Workers = 3
	again := ablate(t, o, 400, 1, 2)
	for i := range a.Rows {
		if !reflect.DeepEqual(again.Rows[i].Runs, a.Rows[i].Runs) {
			t.Errorf("%s: other figures with other workers", a.Rows[i].Row)
		}
	}
}

func TestAblationOfABERT(t *testing.T) {
	o := options(t)
	o.Settings.Encoder, o.Settings.Epochs = bert.Kind, 1
	o.Settings.BERT = &fit.BERT{Model: "../../encoders/bert/testdata/tiny", Pooling: "mean", MaxTokens: 16}
	a := ablate(t, o, 250, 1)
	rows := rowsOf(a)
	if len(rows) != 7 || rows[1] != [2]string{"text", bert.Kind} || rows[2] != [2]string{"link prediction", bert.Kind} {
		t.Errorf("rows %q, want plain BERT and link prediction with BERT", rows)
	}
	if dim := a.Rows[2].Runs[0].Dim; dim != a.Rows[1].Runs[0].Dim {
		t.Errorf("link prediction gave %d dimensions, the plain model has %d", dim, a.Rows[1].Runs[0].Dim)
	}
}
