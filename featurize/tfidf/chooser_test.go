package tfidf

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Counts of shares of the documents, added up, give the model of all documents to the byte, however they are shared.
func TestCountsOfSharesGiveTheSameModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var texts []string
	for range 400 {
		var words []string
		for range 1 + r.IntN(20) {
			words = append(words, fmt.Sprintf("w%dx", int(r.ExpFloat64()*30)))
		}
		texts = append(texts, strings.Join(words, " "))
	}
	opt := DefaultOptions()
	opt.Parts[Word2].MaxFeatures, opt.Parts[Char3].MaxFeatures = 150, 40 // ties decide
	for _, opt := range []Options{opt, opt.KeepAll(), PECOSOptions()} {
		whole, err := NewFitter(opt)
		if err != nil {
			t.Fatal(err)
		}
		whole.AddAll(texts, 2)
		m, err := whole.Fit()
		if err != nil {
			t.Fatal(err)
		}
		want := written(t, m)
		for _, shares := range []int{1, 3, 16} {
			var all []NGram
			for k := range shares {
				f, err := NewFitter(opt)
				if err != nil {
					t.Fatal(err)
				}
				for i := k; i < len(texts); i += shares {
					f.Add(texts[i])
				}
				counted := slices.Collect(f.NGrams())
				if !slices.IsSortedFunc(counted, NGram.Compare) {
					t.Error("the n-grams are not in order")
				}
				all = append(all, counted...)
			}
			slices.SortStableFunc(all, NGram.Compare)
			c, err := NewChooser(opt, len(texts))
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(all); {
				g := all[i]
				for i++; i < len(all) && all[i].Compare(g) == 0; i++ {
					g.DF += all[i].DF
				}
				c.Add(g)
			}
			m, err := c.Fit()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, written(t, m)) {
				t.Errorf("%d shares: another model", shares)
			}
		}
	}
}
