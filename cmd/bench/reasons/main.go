// Command reasons measures how far the reasons of similar items agree with what happens to items whose texts lack a
// word:
//
//	giantstream quickstart
//	go run ./cmd/bench/reasons -store giantstream-quickstart/store
//
// Questions are nodes, and the ten nearest are explained. Of the text of each, the word with the largest part is taken
// out, and for comparison a word by lot and the word with the smallest part. Each time the rest is embedded anew: all
// lengths and the weights of the other n-grams change, which a part knows nothing of.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/featurize/tfidf"
	"giantstream/sink/dirstore"
	"giantstream/stream/commitlog"
	"giantstream/train/encoders/parts"
	"giantstream/train/generation"
	"giantstream/train/numeric"
	"giantstream/train/numeric/blas"
)

func main() {
	blas32.Use(blas.New())
	store := flag.String("store", "giantstream-quickstart/store", "folder of a store")
	shards := flag.Int("shards", 4, "shards of the store")
	questions := flag.Int("questions", 300, "nodes that are asked about, by lot")
	flag.Parse()
	stage.Exit("reasons", run(context.Background(), *store, *shards, *questions))
}

// nearest is how many answers of a question are looked at.
const nearest = 10

func run(ctx context.Context, folder string, shards, questions int) error {
	store, err := dirstore.Open(folder)
	if err != nil {
		return err
	}
	doc, err := generation.Current(ctx, store)
	if err != nil {
		return err
	}
	g, err := generation.Open(ctx, store, doc, nil)
	if err != nil {
		return err
	}
	var ids, texts []string
	for shard := range shards {
		for r, err := range commitlog.Cut(doc.Cut).Facts(ctx, store, shard) {
			if err != nil {
				return err
			}
			if !r.Deleted && r.Text != "" {
				ids, texts = append(ids, strings.Clone(r.NodeID)), append(texts, strings.Clone(r.Text))
			}
		}
	}
	dim := g.Encoder.Dim()
	all := make([]float32, len(ids)*dim)
	if err := g.Encode(ids, texts, all); err != nil {
		return err
	}
	var sum [3]measure
	r := numeric.NewRand(1, 'r')
	worst, ahead, answers, took := 0.0, 0, 0, time.Duration(0)
	for range questions {
		q := r.IntN(len(ids))
		v := all[q*dim : (q+1)*dim]
		near := nearestTo(all, dim, q)
		var nearIDs, nearTexts []string
		for _, i := range near {
			nearIDs, nearTexts = append(nearIDs, ids[i]), append(nearTexts, texts[i])
		}
		began := time.Now()
		explained, err := parts.Split(g.Encoder, nearIDs, nearTexts, v)
		if err != nil {
			return err
		}
		took += time.Since(began)
		for k, c := range explained {
			before, total := numeric.Cosine(v, all[near[k]*dim:(near[k]+1)*dim]), 0.0
			for _, view := range c.Views {
				total += view.Value
			}
			worst = max(worst, math.Abs(total-before))
			words := wordsOf(g.Vectorizer, &c)
			if len(words) < 3 {
				continue
			}
			answers++
			var falls [3]float64
			for m, w := range []word{words[0], words[1+r.IntN(len(words)-1)], words[len(words)-1]} {
				after := make([]float32, dim)
				if err := g.Encode(nearIDs[k:k+1], []string{removeWord(nearTexts[k], w.text)}, after); err != nil {
					return err
				}
				falls[m] = before - numeric.Cosine(v, after)
				sum[m].add(w.part, falls[m])
			}
			if falls[0] > falls[1] {
				ahead++
			}
		}
	}
	fmt.Printf("%d nodes, encoder %s, %d answers of %d questions\n", len(ids), g.Encoder.Kind(), answers, questions)
	fmt.Printf("the views add up to the cosine within %.1e; the reasons of ten answers take %.1f ms\n", worst,
		took.Seconds()*1000/float64(questions))
	for m, name := range []string{"largest part", "by lot", "smallest part"} {
		fmt.Printf("%-14s part of the word %+.4f, the cosine falls by %+.4f (± %.4f)\n", name, sum[m].part/sum[m].n,
			sum[m].fall/sum[m].n, sum[m].error())
	}
	fmt.Printf("the word with the largest part takes more than one by lot: %.1f %%\n",
		100*float64(ahead)/float64(answers))
	return nil
}

// measure adds up falls of a cosine.
type measure struct{ n, part, fall, squares float64 }

func (m *measure) add(part, fall float64) {
	m.n, m.part, m.fall, m.squares = m.n+1, m.part+part, m.fall+fall, m.squares+fall*fall
}

// error is the standard error of the mean fall.
func (m *measure) error() float64 {
	mean := m.fall / m.n
	return math.Sqrt((m.squares/m.n - mean*mean) / m.n)
}

// nearestTo returns the rows nearest to a row.
func nearestTo(all []float32, dim, q int) []int {
	n := len(all) / dim
	order, cosines := make([]int, 0, n), make([]float64, n)
	for i := range n {
		if cosines[i] = numeric.Cosine(all[q*dim:(q+1)*dim], all[i*dim:(i+1)*dim]); i != q {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(cosines[b], cosines[a]), a-b) })
	return order[:min(nearest, len(order))]
}

// word is an n-gram that is a word.
type word struct {
	text string
	part float64
}

// wordsOf returns the words of a text by their parts, the largest first.
func wordsOf(v *tfidf.Model, c *parts.Cosine) (words []word) {
	for k, n := range c.NGrams {
		if v.PartOf(int(n)) == tfidf.Word1 {
			words = append(words, word{strings.TrimPrefix(v.Feature(int(n)), "w:"), c.Values[k]})
		}
	}
	slices.SortStableFunc(words, func(a, b word) int { return cmp.Compare(b.part, a.part) })
	return words
}

// removeWord returns a text without a word, which is in lower case.
func removeWord(text, word string) string {
	var b strings.Builder
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r) }
	for len(text) > 0 {
		end := strings.IndexFunc(text, func(r rune) bool { return !inWord(r) })
		if end < 0 {
			end = len(text)
		}
		if strings.ToLower(text[:end]) != word {
			b.WriteString(text[:end])
		}
		text = text[end:]
		if end = strings.IndexFunc(text, inWord); end < 0 {
			end = len(text)
		}
		b.WriteString(text[:end])
		text = text[end:]
	}
	return b.String()
}
