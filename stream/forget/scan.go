package forget

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"giantstream/internal/ambient"
	"giantstream/sink"
)

// Vocabulary reads the vocabularies of generations.
type Vocabulary interface {
	// Owned returns the n-grams of the vocabulary in r that only the forgotten texts have; ok is false if the bytes are
	// no vocabulary.
	Owned(r io.Reader) (ngrams []string, ok bool, err error)
}

// Scanner looks for ids and texts. Create it with NewScanner. It is not safe for concurrent use.
type Scanner struct {
	needles    *needles
	vocabulary Vocabulary
	report     Report
	// at is the object or the partition that is being scanned.
	at   *Finding
	seen map[needle]bool
	hits int64 // how often anything was found
}

// Report is what a scan has found. It names places and never an id or a text.
type Report struct {
	// Objects, Bytes and Records are what was opened; Kinds says as what, and how many.
	Objects int64            `json:"objects"`
	Bytes   int64            `json:"bytes"`
	Records int64            `json:"records"`
	Kinds   map[string]int64 `json:"kinds"`
	// Findings are the places where something is left.
	Findings []Finding `json:"findings"`
	// Unread are places that could not be opened, with the reason. What is in them is not known.
	Unread []string `json:"unread,omitempty"`
}

// Finding is an object, a partition of a topic or a table of a sink in which something is left.
type Finding struct {
	// Place is the key of the object, the topic and the partition ("nodes/3"), or the table.
	Place string `json:"place"`
	Kind  string `json:"kind"`
	// Where says where in it: columns, keys, values.
	Where []string `json:"where"`
	// IDs and Texts count the ids and the texts, or lines of texts, that are left there.
	IDs   int `json:"ids"`
	Texts int `json:"texts"`
	// Owned counts the n-grams of a vocabulary that only the forgotten texts have.
	Owned int `json:"owned_ngrams,omitempty"`
	// First and Last are the offsets of the first and the last record of a partition that has something.
	First int64 `json:"first_offset,omitempty"`
	Last  int64 `json:"last_offset,omitempty"`
	// Do says what rids the place of it, where docs/OPERATIONS.md cannot say it for all places of the kind.
	Do string `json:"do,omitempty"`
}

// Targets are what a scan looks for.
type Targets struct {
	IDs, Texts []string
	// Vocabulary may be nil: then vocabularies are searched as bytes.
	Vocabulary Vocabulary
}

// NewScanner returns a Scanner for the targets.
func NewScanner(t Targets) *Scanner {
	return &Scanner{needles: newNeedles(t.IDs, t.Texts), vocabulary: t.Vocabulary,
		report: Report{Kinds: map[string]int64{}, Findings: []Finding{}}}
}

// Report returns what was found so far, in the order of the scans.
func (s *Scanner) Report() Report { return s.report }

// Store scans every object of a store but those under the prefixes of except. An object that is removed meanwhile has
// nothing left.
func (s *Scanner) Store(ctx context.Context, store sink.Store, except []string, progress ambient.Progress) error {
	progress = ambient.OrDiscard(progress)
	progress.Stage("scan the store", 0)
	for info, err := range store.List(ctx, "", "") {
		if err != nil {
			return err
		}
		if slices.ContainsFunc(except, func(prefix string) bool { return strings.HasPrefix(info.Key, prefix) }) {
			continue
		}
		open := func() (sink.Object, error) { return store.Open(ctx, info.Key) }
		if err := s.object(ctx, info.Key, "", open); err != nil {
			return err
		}
		progress.Add(1)
	}
	return nil
}

// OlderVersion is the kind of a version of an object that was replaced or deleted.
const OlderVersion = "older version"

// Versions scans what a bucket with versioning has kept of objects that were replaced or deleted. If they cannot be
// listed, they are in the report as unread.
func (s *Scanner) Versions(ctx context.Context, store sink.Versioned, progress ambient.Progress) error {
	progress = ambient.OrDiscard(progress)
	progress.Stage("scan older versions", 0)
	for v, err := range store.Versions(ctx) {
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.Unread("older versions of objects", err)
			return nil
		}
		open := func() (sink.Object, error) { return store.OpenVersion(ctx, v) }
		if err := s.object(ctx, v.Key+", version "+v.ID, OlderVersion, open); err != nil {
			return err
		}
		progress.Add(1)
	}
	return nil
}

// Unread notes a place that cannot be opened.
func (s *Scanner) Unread(place string, why error) {
	s.report.Unread = append(s.report.Unread, fmt.Sprintf("%s: %v", place, why))
}

// object scans an object. kind is what the report calls it, "" for what it turns out to be.
func (s *Scanner) object(ctx context.Context, place, kind string, open func() (sink.Object, error)) error {
	o, err := open()
	if err == nil {
		s.begin(place)
		s.found([]byte(place), apart, "its key")
		var is string
		is, err = s.content(ctx, place, o)
		s.end(cmp.Or(kind, is))
		err = errors.Join(err, o.Close())
	}
	if err != nil && !errors.Is(err, sink.ErrNotFound) {
		return fmt.Errorf("scan %s: %w", place, err)
	}
	return nil
}

// begin begins a place.
func (s *Scanner) begin(place string) {
	s.at, s.seen = &Finding{Place: place, First: -1}, map[needle]bool{}
}

// end enters the place in the report, if something was found there.
func (s *Scanner) end(kind string) {
	s.report.Kinds[kind]++
	if s.at.First < 0 {
		s.at.First = 0
	}
	if s.at.Kind = kind; len(s.at.Where) > 0 {
		slices.Sort(s.at.Where)
		s.report.Findings = append(s.report.Findings, *s.at)
	}
}

// found looks for the needles in a value.
func (s *Scanner) found(value []byte, m mode, where string) {
	s.needles.search(value, m, func(w needle) {
		s.hits++
		if !s.seen[w] {
			s.seen[w] = true
			if w.id {
				s.at.IDs++
			} else {
				s.at.Texts++
			}
		}
		what := "text in " + where
		if w.id {
			what = "id in " + where
		}
		if !slices.Contains(s.at.Where, what) {
			s.at.Where = append(s.at.Where, what)
		}
	})
}

// content opens an object as what its first and last bytes say that it is, and returns its kind.
func (s *Scanner) content(ctx context.Context, key string, o sink.Object) (kind string, err error) {
	s.report.Objects, s.report.Bytes = s.report.Objects+1, s.report.Bytes+o.Size()
	const most = 64
	head := make([]byte, min(most, o.Size()))
	tail := make([]byte, len(head))
	if _, err := o.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if _, err := o.ReadAt(tail, o.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	whole := func() io.Reader { return io.NewSectionReader(o, 0, o.Size()) }
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")) && bytes.HasSuffix(tail, []byte("PAR1")):
		err = s.parquet(o)
		kind = "parquet"
	case bytes.HasSuffix(tail, []byte(tableMagic)):
		err = s.table(ctx, o)
		kind = "table of a checkpoint"
	case bytes.HasSuffix(tail, []byte(blobMagic)):
		// The values are uncompressed, and no id is one.
		err = s.bytesOf(whole(), anywhere, "values")
		kind = "values of a checkpoint"
	case strings.Contains(key, "/state/files/"):
		err = s.bytesOf(whole(), tailOfKey, "the list of tables")
		kind = "other file of a checkpoint"
	case isCompressed(head) && s.compressed(whole(), head):
		kind = "compressed"
	default:
		if kind, err = s.document(o, head); kind != "" || err != nil {
			return kind, err
		}
		if s.vocabulary != nil {
			var owned []string
			var ok bool
			if owned, ok, err = s.vocabulary.Owned(whole()); err == nil && ok {
				if len(owned) > 0 {
					s.at.Owned, s.at.Where = len(owned), append(s.at.Where, "n-grams of the forgotten texts alone")
				}
				return "vocabulary", nil
			}
		}
		if err == nil {
			err = s.bytesOf(whole(), anywhere, "raw bytes")
		}
		kind = "raw"
	}
	return kind, err
}

// tailOfKey is how an id stands in the engine's list of tables: after a byte for the space of the key.
const tailOfKey = tail

// bytesOf searches bytes piece by piece. Pieces overlap by the longest needle.
func (s *Scanner) bytesOf(r io.Reader, m mode, where string) error {
	const piece = 1 << 20
	buf := make([]byte, 0, piece+2*s.needles.longest+2)
	for {
		n, err := io.ReadFull(r, buf[len(buf):len(buf)+piece])
		buf = buf[:len(buf)+n]
		s.found(buf, m, where)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		keep := min(len(buf), s.needles.longest+1)
		buf = append(buf[:0], buf[len(buf)-keep:]...)
	}
}
