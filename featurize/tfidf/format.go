package tfidf

import (
	"bytes"
	"errors"
	"io"
	"math"

	"giantstream/internal/artifact"
)

// Format: docs/format/vectorizer.md.
const (
	magic    = "GSTFIDF\x00"
	version1 = 1 // as version 2, but the default profile is defaultV1
	version  = 2
	version3 = 3 // as version 2, and then the features' numbers: a release that extended vocabularies has fitted it
)

// Write writes the model as a vectorizer artifact.
func (m *Model) Write(w io.Writer) error {
	v, profile := uint32(version), m.profile
	if profile == defaultV1 {
		v, profile = version1, Default
	}
	if m.column != nil {
		if m.profile == defaultV1 {
			return errors.New("tfidf: a model of version 1 has no numbers of features")
		}
		v = version3
	}
	a := artifact.NewWriter(w, magic, v)
	a.U32(uint32(profile))
	a.U64(uint64(m.docs))
	lengths := make([]int32, m.words.len())
	for id := range lengths {
		lengths[id] = int32(len(m.words.word(id)))
	}
	a.Int32s(lengths)
	a.Bytes(m.words.arena)
	for p := Word1; p < numParts; p++ {
		a.Uint64s(m.part(p))
		a.Float32s(m.idf[m.first[p]:m.first[p+1]])
	}
	if m.column != nil {
		a.Int32s(m.column)
	}
	return a.Close()
}

// Read reads a vectorizer artifact. The error is artifact.ErrCorrupt or
// artifact.ErrUnknown when the bytes are to blame.
func Read(r io.Reader) (*Model, error) {
	a, err := artifact.NewReader(r, magic, version1, version, version3)
	if err != nil {
		return nil, err
	}
	m := &Model{words: &wordTable{start: []int64{0}}}
	m.profile = Profile(a.U32())
	if !m.profile.valid() {
		a.Fail("unknown profile %d", m.profile)
	}
	if m.profile == Default && a.Version() == version1 {
		m.profile = defaultV1
	}
	m.docs = a.Int("document count", 0, math.MaxInt64)
	for _, n := range a.Int32s("word lengths", 2*maxFeatures) {
		if n < 1 {
			a.Fail("a word of %d bytes", n)
			break
		}
		m.words.start = append(m.words.start, m.words.start[m.words.len()]+int64(n))
	}
	m.words.arena = a.Bytes("words", math.MaxInt)
	if end := m.words.start[m.words.len()]; end != int64(len(m.words.arena)) {
		a.Fail("words take %d bytes, their lengths say %d", len(m.words.arena), end)
	}
	for p := Word1; p < numParts && a.Err() == nil; p++ {
		keys := a.Uint64s("keys of "+partNames[p], maxFeatures)
		idf := a.Float32s("idf of "+partNames[p], maxFeatures)
		if len(keys) != len(idf) {
			a.Fail("%s: %d keys and %d idf", partNames[p], len(keys), len(idf))
		}
		m.keys, m.idf = append(m.keys, keys...), append(m.idf, idf...)
		m.first[p+1] = len(m.keys)
	}
	if a.Version() == version3 {
		if m.column = a.Int32s("numbers of features", maxFeatures); !m.invert() {
			a.Fail("the features' numbers are no permutation")
		}
	}
	if err := a.Close(); err != nil {
		return nil, err
	}
	m.check(a)
	if err := a.Err(); err != nil {
		return nil, err
	}
	m.index()
	return m, nil
}

// check refuses a model whose values make no sense although the checksum holds.
func (m *Model) check(a *artifact.Reader) {
	words := uint64(m.words.len())
	for id := 1; id < m.words.len(); id++ {
		if bytes.Compare(m.words.word(id-1), m.words.word(id)) >= 0 {
			a.Fail("words are not in order at %d", id)
			return
		}
	}
	for i, key := range m.keys {
		var bad bool
		switch m.partAt(i) {
		case Word1:
			bad = key >= words
		case Word2:
			bad = key>>32 >= words || key&math.MaxUint32 >= words
		default:
			bad = key>>(3*runeBits) != 0
		}
		if bad || !(m.idf[i] >= 0 && m.idf[i] < 100) {
			a.Fail("feature %d has key %x and idf %v", i, key, m.idf[i])
			return
		}
	}
}
