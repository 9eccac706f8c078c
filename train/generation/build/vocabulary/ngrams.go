package vocabulary

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"

	"giantstream/featurize/tfidf"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/numeric"
)

// appendNGram and readNGram are how counts lie in a section, ascending.
func appendNGram(b []byte, g tfidf.NGram) []byte {
	b = append(b, byte(g.Part))
	switch g.Part {
	case tfidf.Char3:
		b = binary.AppendUvarint(b, g.Runes)
	case tfidf.Word2:
		b = sections.AppendString(sections.AppendString(b, g.Word), g.Next)
	default:
		b = sections.AppendString(b, g.Word)
	}
	return binary.AppendUvarint(b, uint64(g.DF))
}

func readNGram(d *sections.Decoder) tfidf.NGram {
	part, word, next, runes := readNGramHead(d)
	return tfidf.NGram{Part: part, Word: string(word), Next: string(next), Runes: runes, DF: int(d.Uvarint())}
}

// readNGramHead reads an n-gram up to its count. Words share the memory of the input.
func readNGramHead(d *sections.Decoder) (part tfidf.Part, word, next []byte, runes uint64) {
	if b := d.Bytes(1); b != nil {
		part = tfidf.Part(b[0])
	}
	switch part {
	case tfidf.Char3:
		runes = d.Uvarint()
	case tfidf.Word2:
		word, next = d.StringBytes(), d.StringBytes()
	case tfidf.Word1:
		word = d.StringBytes()
	default:
		d.Err = errors.Join(d.Err, sections.ErrShort)
	}
	return part, word, next, runes
}

// keyOf hashes an n-gram: its upper bits choose who adds up its counts.
func keyOf(g tfidf.NGram) uint64 {
	r := numeric.NewRand(uint64(g.Part), graph.HashOf(g.Word), graph.HashOf(g.Next), g.Runes)
	return r.Uint64()
}

// run is what one partition has counted, as merge goes along it. The words of its head share the section's memory.
type run struct {
	sections.Decoder
	part       tfidf.Part
	word, next []byte
	runes      uint64
	df         int
}

func (r *run) advance() {
	r.part, r.word, r.next, r.runes = readNGramHead(&r.Decoder)
	r.df = int(r.Uvarint())
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

func (r runs) Len() int { return len(r) }

func (r runs) Less(i, j int) bool { return r[i].compare(r[j]) < 0 }

func (r runs) Swap(i, j int) { r[i], r[j] = r[j], r[i] }

func (r *runs) Push(x any) { *r = append(*r, x.(*run)) }

func (r *runs) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
