package build

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"giantstream/featurize/tfidf"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric"
)

// appendNGram and readNGram are how counts lie in a section, ascending.
func appendNGram(b []byte, g tfidf.NGram) []byte {
	b = append(b, byte(g.Part))
	switch g.Part {
	case tfidf.Char3:
		b = binary.AppendUvarint(b, g.Runes)
	case tfidf.Word2:
		b = appendString(appendString(b, g.Word), g.Next)
	default:
		b = appendString(b, g.Word)
	}
	return binary.AppendUvarint(b, uint64(g.DF))
}

func readNGram(d *decoder) tfidf.NGram {
	part, word, next, runes := d.ngram()
	return tfidf.NGram{Part: part, Word: string(word), Next: string(next), Runes: runes, DF: int(d.uvarint())}
}

// ngram reads an n-gram up to its count. Words share the memory of the input.
func (d *decoder) ngram() (part tfidf.Part, word, next []byte, runes uint64) {
	if b := d.bytes(1); b != nil {
		part = tfidf.Part(b[0])
	}
	switch part {
	case tfidf.Char3:
		runes = d.uvarint()
	case tfidf.Word2:
		word, next = d.string(), d.string()
	case tfidf.Word1:
		word = d.string()
	default:
		d.err = errors.Join(d.err, errShort)
	}
	return part, word, next, runes
}

// keyOf hashes an n-gram: its upper bits choose who adds up its counts.
func keyOf(g tfidf.NGram) uint64 {
	r := numeric.NewRand(uint64(g.Part), hashOf(g.Word), hashOf(g.Next), g.Runes)
	return r.Uint64()
}

func (t *task) tfidfOptions(ctx context.Context) (tfidf.Options, index, error) {
	x, err := t.numbered(ctx)
	if err != nil {
		return tfidf.Options{}, x, err
	}
	o, err := fit.VectorizerOptions(t.doc.Settings, x.nodes())
	return o, x, err
}

// count counts the documents of a partition that hold each n-gram.
func (t *task) count(ctx context.Context) error {
	if warm, _, err := t.warm(ctx); err != nil || warm {
		return err
	}
	o, _, err := t.tfidfOptions(ctx)
	if err != nil {
		return err
	}
	fitter, err := tfidf.NewFitter(o)
	if err != nil {
		return err
	}
	if err := t.texts(ctx, t.Partition, func(_ int, texts []string) error {
		fitter.AddAll(texts, 1)
		return ctx.Err()
	}); err != nil {
		return err
	}
	out := t.newSections(t.plan.Partitions)
	defer out.close() //nolint:errcheck // a temporary file
	var b []byte
	for g := range fitter.NGrams() {
		b = appendNGram(b[:0], g)
		if err := out.add(partitionOf(keyOf(g), t.plan.Partitions), b); err != nil {
			return err
		}
	}
	return t.putSections(ctx, "ngrams", out)
}

// texts calls visit with the texts of a partition, a block after the other.
func (b *build) texts(ctx context.Context, partition int, visit func(lo int, texts []string) error) error {
	return b.eachBlock(ctx, Number, "texts", partition, func(d *decoder, lo, hi int) error {
		texts := make([]string, 0, block)
		for range hi - lo {
			texts = append(texts, string(d.string()))
		}
		if d.err != nil {
			return d.err
		}
		return visit(lo, texts)
	})
}

// eachBlock calls visit with each block of an output that has one record for each node of a partition: those of nodes
// lo ≤ i < hi. An error of the decoder is one of the task that wrote it.
func (b *build) eachBlock(ctx context.Context, stage, name string, partition int,
	visit func(d *decoder, lo, hi int) error) error {
	x, err := b.numbered(ctx)
	if err != nil {
		return err
	}
	from, err := b.from(ctx, stage, partition)
	if err != nil {
		return err
	}
	in, err := from.sections(ctx, name)
	if err != nil {
		return err
	}
	defer in.Close()
	n := x.size(partition)
	var read [][]byte
	for k := range blocks(n) {
		if len(read) == 0 {
			if read, err = in.stretch(k, blocks(n)); err != nil {
				return err
			}
		}
		d := decoder{b: read[0]}
		read = read[1:]
		err = visit(&d, k*block, min(n, (k+1)*block))
		if d.err != nil {
			return from.explain(d.err)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// run is what one partition has counted, as merge goes along it. The words of its head share the section's memory.
type run struct {
	decoder
	part       tfidf.Part
	word, next []byte
	runes      uint64
	df         int
}

func (r *run) advance() {
	r.part, r.word, r.next, r.runes = r.ngram()
	r.df = int(r.uvarint())
}

// compare is tfidf.NGram.Compare.
func (r *run) compare(other *run) int {
	if c := cmp.Compare(r.part, other.part); c != 0 {
		return c
	}
	if c := bytes.Compare(r.word, other.word); c != 0 {
		return c
	}
	if c := bytes.Compare(r.next, other.next); c != 0 {
		return c
	}
	return cmp.Compare(r.runes, other.runes)
}

type runs []*run

func (r runs) Len() int           { return len(r) }
func (r runs) Less(i, j int) bool { return r[i].compare(r[j]) < 0 }
func (r runs) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *runs) Push(x any)        { *r = append(*r, x.(*run)) }
func (r *runs) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// merge adds up what the partitions have counted of a share of the n-grams, and keeps those that may be features. It
// holds the share's counts in memory.
func (t *task) merge(ctx context.Context) error {
	if warm, _, err := t.warm(ctx); err != nil || warm {
		return err
	}
	o, x, err := t.tfidfOptions(ctx)
	if err != nil {
		return err
	}
	chooser, err := tfidf.NewChooser(o, x.nodes())
	if err != nil {
		return err
	}
	var all runs
	for p := range t.plan.Partitions {
		from, err := t.from(ctx, Count, p)
		if err != nil {
			return err
		}
		b, err := from.section(ctx, "ngrams", t.Partition)
		if err != nil {
			return err
		}
		if r := (&run{decoder: decoder{b: b}}); r.more() {
			r.advance()
			all = append(all, r)
		}
	}
	heap.Init(&all)
	for len(all) > 0 {
		first := *all[0]
		df := 0
		for len(all) > 0 && all[0].compare(&first) == 0 {
			r := all[0]
			df += r.df
			if r.more() {
				r.advance()
				heap.Fix(&all, 0)
			} else {
				heap.Pop(&all)
			}
			if r.err != nil {
				return fmt.Errorf("counts of n-grams: %w", r.err)
			}
		}
		if !chooser.Wants(first.part, df) {
			continue
		}
		chooser.Add(tfidf.NGram{Part: first.part, Word: string(first.word), Next: string(first.next),
			Runes: first.runes, DF: df})
	}
	out := t.newSections(1)
	defer out.close() //nolint:errcheck // a temporary file
	for g := range chooser.Chosen() {
		if err := out.add(0, appendNGram(nil, g)); err != nil {
			return err
		}
	}
	return t.putSections(ctx, "chosen", out)
}

// vectorizer chooses the features among those that the shares have kept. A warm start keeps the parent's.
func (t *task) vectorizer(ctx context.Context) error {
	if warm, _, err := t.warm(ctx); err != nil || warm {
		return errors.Join(err, t.keepArtifact(ctx, generation.VectorizerName))
	}
	o, x, err := t.tfidfOptions(ctx)
	if err != nil {
		return err
	}
	chooser, err := tfidf.NewChooser(o, x.nodes())
	if err != nil {
		return err
	}
	for p := range t.plan.Partitions {
		from, err := t.from(ctx, Merge, p)
		if err != nil {
			return err
		}
		b, err := from.section(ctx, "chosen", 0)
		if err != nil {
			return err
		}
		for d := (decoder{b: b}); d.more(); {
			g := readNGram(&d)
			if d.err != nil {
				return from.explain(d.err)
			}
			chooser.Add(g)
		}
	}
	model, err := chooser.Fit()
	if errors.Is(err, tfidf.ErrNoText) {
		return t.alike(x, err)
	}
	if err != nil {
		return err
	}
	return t.put(ctx, "vectorizer", t.final(generation.VectorizerName), model.Write)
}

// alike is the error of texts without features.
func (t *task) alike(x index, err error) error {
	return fmt.Errorf("%w: there are %d, and their texts are too few, empty or all alike (%w)", generation.ErrTooFew,
		x.nodes(), err)
}

// final is the key of an artifact of the generation.
func (b *build) final(name string) string { return generation.Prefix(b.plan.Generation) + name }
