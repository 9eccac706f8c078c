package embeddings

import (
	"slices"

	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

// examOf returns what embeddings are evaluated on: known and hidden edges of nodes that have a text which the
// encoder of these vectors, a row each, knows something of.
func examOf(texts *fit.Texts, vectors []float32, dim int, known *train.Graph, hidden []eval.Edge) (fit.Exam, error) {
	status, err := statuses(texts, vectors, dim)
	if err != nil {
		return fit.Exam{}, err
	}
	return examWithout(status, known, hidden), nil
}

// statuses says which nodes the encoder has made a vector of.
func statuses(texts *fit.Texts, vectors []float32, dim int) ([]embedding.Status, error) {
	out := make([]embedding.Status, texts.Len())
	for i := range out {
		text, err := texts.Text(i)
		if err != nil {
			return nil, err
		}
		var r embedding.Record
		r.SetVector(text, vectors[i*dim:(i+1)*dim])
		out[i] = r.Status
	}
	return out, nil
}

// examWithout returns what embeddings are evaluated on: the classes of the nodes that have a text,
// and the hidden edges between them.
func examWithout(status []embedding.Status, known *train.Graph, hidden []eval.Edge) fit.Exam {
	missing := func(i int32) bool { return status[i] == embedding.NoText }
	x := fit.Exam{Known: known, Hidden: hidden}
	if slices.Contains(status, embedding.NoText) {
		graph := *known
		graph.Classes = slices.Clone(known.Classes)
		for i := range graph.Classes {
			if missing(int32(i)) {
				graph.Classes[i] = ""
			}
		}
		x.Known, x.Hidden = &graph, nil
		for _, h := range hidden {
			if missing(h.Src) || missing(h.Dst) {
				x.Left = append(x.Left, h)
			} else {
				x.Hidden = append(x.Hidden, h)
			}
		}
	}
	classes := slices.Clone(x.Known.Classes)
	slices.Sort(classes)
	classes = slices.DeleteFunc(slices.Compact(classes), func(c string) bool { return c == "" })
	x.Classes = len(classes)
	return x
}
