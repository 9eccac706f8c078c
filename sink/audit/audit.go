// Package audit is the frame of a check of a whole store: what is stored, what of it the documents name, and
// what is wrong. The packages that own the documents do the checking (commitlog.AuditShard, generation.Audit,
// lease.Audit); command verify runs them and prints.
//
// New lists the store. Each check claims the objects that its documents name, and reports what is wrong. What
// nobody has claimed in the end is an orphan.
package audit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"giantstream/sink"
)

// Kind says how bad a finding is.
type Kind string

// The kinds of findings.
const (
	// Lost: rows or offsets that were committed are not what was committed.
	Lost Kind = "lost"
	// Derived: what is damaged can be made again from what is whole.
	Derived Kind = "derived"
	// Orphan: nobody names the object. It costs space and does no harm.
	Orphan Kind = "orphan"
)

// Finding is one thing that is wrong.
type Finding struct {
	Kind   Kind   `json:"kind"`
	Object string `json:"object"`
	What   string `json:"what"`
	// Lost is what the damage costs, and Do what to do about it.
	Lost string `json:"lost,omitempty"`
	Do   string `json:"do,omitempty"`
	// Repaired says what --repair has done, "" if nothing.
	Repaired string `json:"repaired,omitempty"`
}

// Progress shows how far an audit is.
type Progress interface{ Add(n int64) }

// Audit is one pass over a store. It is not safe for concurrent use.
type Audit struct {
	Store sink.Store
	// May says whether a finding may be repaired; nil repairs nothing.
	May func(Finding) bool
	// Progress counts the bytes that were verified; it may be nil.
	Progress Progress

	Findings []Finding
	// Objects and Bytes were verified against a checksum. Unsealed counts the documents without one, which
	// older releases have written.
	Objects, Bytes int64
	Unsealed       int64
	// Unidentified counts the objects that have the checksum that the document names, as every whole object of their
	// kind has: they end in their own CRC-32C, and an older release wrote the CRC-32C of the whole into the document.
	Unidentified int64

	// Generations are those that documents name as complete, with a key of such a document, and Canaries those that a
	// canary topic got.
	Generations, Canaries map[int64]string

	size    map[string]int64 // by key
	keys    []string         // ascending
	claimed map[string]bool
}

// New lists a store. It holds the keys in memory.
func New(ctx context.Context, store sink.Store) (*Audit, error) {
	a := &Audit{Store: store, Generations: map[int64]string{}, Canaries: map[int64]string{},
		size: map[string]int64{}, claimed: map[string]bool{}}
	for info, err := range sink.Objects(ctx, store) {
		if err != nil {
			return nil, err
		}
		a.size[info.Key] = info.Size
	}
	a.keys = slices.Sorted(maps.Keys(a.size))
	return a, nil
}

// TotalBytes is the size of all objects.
func (a *Audit) TotalBytes() (n int64) {
	for _, size := range a.size {
		n += size
	}
	return n
}

// Has reports whether an object was listed.
func (a *Audit) Has(key string) bool {
	_, ok := a.size[key]
	return ok
}

// Keys returns the keys that begin with prefix, ascending.
func (a *Audit) Keys(prefix string) []string {
	from, _ := slices.BinarySearch(a.keys, prefix)
	to := from
	for to < len(a.keys) && strings.HasPrefix(a.keys[to], prefix) {
		to++
	}
	return a.keys[from:to]
}

// Claim says that a document names an object, or that the object is a document.
func (a *Audit) Claim(key string) { a.claimed[key] = true }

// Document counts an object that was verified by its own checksum, or that has none.
func (a *Audit) Document(key string, sealed bool) {
	a.Claim(key)
	if !sealed {
		a.Unsealed++
		return
	}
	a.Counted(a.size[key])
}

// Counted counts an object of that many bytes as verified.
func (a *Audit) Counted(bytes int64) {
	a.Objects++
	a.Bytes += bytes
	if a.Progress != nil {
		a.Progress.Add(bytes)
	}
}

// Verify claims an object and reads it through. damage is what is wrong with it, nil for nothing; err is a
// failure of the store.
func (a *Audit) Verify(ctx context.Context, ref sink.Ref) (damage, err error) {
	a.Claim(ref.Key)
	switch err := sink.Verify(ctx, a.Store, ref); {
	case err == nil:
		if !ref.Identifies() {
			a.Unidentified++
		}
		a.Counted(ref.Bytes)
		return nil, nil
	case IsDamage(err):
		return err, nil
	default:
		return nil, err
	}
}

// IsDamage reports whether an error of a read says that the object is missing or not what was stored.
func IsDamage(err error) bool {
	return errors.Is(err, sink.ErrDamaged) || errors.Is(err, sink.ErrNotFound)
}

// Found reports a finding. repair, if not nil, repairs it; repaired says how, for people.
func (a *Audit) Found(ctx context.Context, f Finding, repaired string, repair func(context.Context) error) error {
	if repair != nil && a.May != nil && a.May(f) {
		if err := repair(ctx); err != nil {
			return err
		}
		f.Repaired = repaired
	} else if repair != nil {
		f.Do = strings.TrimSpace(f.Do + " 'giantstream verify --repair' does: " + repaired)
	}
	a.Findings = append(a.Findings, f)
	return nil
}

// Orphans reports what nobody has claimed.
func (a *Audit) Orphans() {
	for _, key := range a.keys {
		if !a.claimed[key] {
			a.Findings = append(a.Findings, Finding{Kind: Orphan, Object: key, What: "no document names it"})
		}
	}
}

// Damage counts the findings that are damage and not repaired.
func (a *Audit) Damage() (n int) {
	for _, f := range a.Findings {
		if f.Kind != Orphan && f.Repaired == "" {
			n++
		}
	}
	return n
}
