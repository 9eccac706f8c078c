package commitlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
)

// AuditIdentity checks pipeline.json and returns the number of shards. If the identity cannot be read, it is
// the number of shards that the store has objects of.
func AuditIdentity(ctx context.Context, a *audit.Audit) (shards int, err error) {
	id, err := LoadIdentity(ctx, a.Store)
	var data []byte
	if err == nil {
		data, err = sink.ReadAll(ctx, a.Store, identityKey)
	}
	if err == nil {
		var sealed bool
		if sealed, err = decodeSealed(data, &Identity{}); err == nil {
			a.Document(identityKey, sealed)
			return id.Shards, nil
		}
	}
	if _, isStore := errors.AsType[*sink.Error](err); isStore && !audit.IsDamage(err) {
		return 0, err
	}
	a.Claim(identityKey)
	for _, key := range a.Keys("shards/") {
		number, _, _ := strings.Cut(strings.TrimPrefix(key, "shards/"), "/")
		if p, err := strconv.Atoi(number); err == nil {
			shards = max(shards, p+1)
		}
	}
	return shards, a.Found(ctx, audit.Finding{Kind: audit.Lost, Object: identityKey, What: err.Error(),
		Lost: "no command can open the store; its rows are not affected",
		Do:   "restore this object from a backup, or write it by hand (docs/format/manifest.md, \"Beside it\")."},
		"", nil)
}

// Audit checks all that a shard has in the store: manifests and their chain, rows, merged blocks, checkpoints and
// the cursor of the embeddings.
func Audit(ctx context.Context, a *audit.Audit, shard int) error {
	s := &shardAudit{Audit: a, shard: shard, log: map[int64]*Manifest{}, folded: map[int64]*folded{},
		bad: map[string]error{}}
	for _, step := range []func(context.Context) error{s.manifests, s.foldedBlocks, s.blocks, s.rows, s.checkpoints,
		s.published, s.standby} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("verify shard %d: %w", shard, err)
		}
	}
	return nil
}

// restoreIt is what to do about rows and manifests: they are made of nothing else in the store.
const restoreIt = "Restore the object from a backup of the store. Without one, build a new store from the topics " +
	"or files."

type shardAudit struct {
	*audit.Audit
	shard int
	// boundary is that of the log. Nothing is expected of manifests up to it.
	boundary Boundary
	log      map[int64]*Manifest // those that are whole
	head     int64               // the number of the newest one, damaged ones included
	folded   map[int64]*folded   // whole folded blocks, by their first manifest
	// whole are the merged blocks whose document and objects are whole.
	whole [compactionLevels + 1]map[int64]*compaction
	bad   map[string]error // row objects that were verified, nil for whole ones
}

// manifests reads the log from its boundary and follows the chain.
func (s *shardAudit) manifests(ctx context.Context) error {
	known, err := s.readBoundary(ctx)
	if err != nil {
		return err
	}
	var prev *Manifest
	if s.head = s.boundary.Seq; s.head > 0 {
		prev = &Manifest{Seq: s.head, Committed: s.boundary.Committed, digest: s.boundary.Digest}
	}
	keys, err := s.placeManifests(ctx)
	if err != nil {
		return err
	}
	for _, seq := range slices.Sorted(maps.Keys(keys)) {
		key := keys[seq]
		if seq <= s.boundary.Seq {
			s.Claim(key) // it is removed sooner or later
			continue
		}
		if !known && s.head == 0 {
			s.head = seq - 1 // how much was removed before is what the boundary knew
		}
		if s.head < seq-1 {
			if err := s.missing(ctx, s.head+1, seq-1, fmt.Sprintf("manifest %d is there", seq)); err != nil {
				return err
			}
			prev = nil
		}
		m, sealed, err := s.readManifest(ctx, key)
		if err != nil && isStore(err) && !audit.IsDamage(err) {
			return err
		}
		if err == nil && (m.Shard != s.shard || m.Seq != seq) {
			err = fmt.Errorf("it holds manifest %d of shard %d", m.Seq, m.Shard)
		}
		if err == nil {
			s.Document(key, sealed)
			if prev != nil {
				err = m.continues(prev)
			}
		} else {
			s.Claim(key)
			m = nil
		}
		if err != nil {
			if err := s.lost(ctx, key, err.Error()); err != nil {
				return err
			}
		}
		if m != nil {
			s.log[seq] = m
		}
		s.head, prev = seq, m
	}
	if !known {
		if err := s.lostBoundary(ctx); err != nil {
			return err
		}
	}
	return s.end(ctx)
}

// readBoundary reads the boundary of the log, and reports whether it can be read.
func (s *shardAudit) readBoundary(ctx context.Context) (known bool, err error) {
	b, err := ReadBoundary(ctx, s.Store, s.shard)
	if errors.Is(err, ErrDamaged) || audit.IsDamage(err) {
		s.Claim(boundaryKey(s.shard))
		return false, nil
	}
	if err == nil && b.Seq > 0 && s.Has(boundaryKey(s.shard)) {
		s.Document(boundaryKey(s.shard), true)
	}
	s.boundary = b
	return true, err
}

// lostBoundary reports a boundary that cannot be read. It can be made again: every manifest behind it that is
// still there and continued by the chain keeps its number from being taken.
func (s *shardAudit) lostBoundary(ctx context.Context) error {
	key := boundaryKey(s.shard)
	f := audit.Finding{Kind: audit.Derived, Object: key, What: "it is not what was stored",
		Lost: "nothing, but no worker or reader of the shard goes on without it"}
	oldest := s.log[s.head]
	if oldest == nil {
		f.Kind, f.Do = audit.Lost, restoreIt
		return s.Found(ctx, f, "", nil)
	}
	for before := s.log[oldest.Seq-1]; before != nil && oldest.Previous == before.digest; before = s.log[oldest.Seq-1] {
		oldest = before
	}
	b := Boundary{Format: boundaryFormat, Shard: s.shard, Seq: oldest.Seq - 1, Digest: oldest.Previous,
		Moved: oldest.Created}
	if oldest.Format >= GroupManifestFormat {
		b.Format = groupBoundaryFormat
	}
	if oldest.Committed != nil {
		before := *oldest.Committed - oldest.Rows
		b.Committed = &before
	}
	s.boundary = b
	return s.Found(ctx, f, fmt.Sprintf("write it again, at manifest %d; stop the pipeline before", b.Seq),
		func(ctx context.Context) error {
			if b.Seq == 0 { // nothing was removed
				return s.Store.Delete(ctx, key)
			}
			data, err := seal.JSON(b)
			if err != nil {
				return err
			}
			return sink.PutBytes(ctx, s.Store, key, data)
		})
}

// foldedBlocks checks the documents of folded blocks.
func (s *shardAudit) foldedBlocks(ctx context.Context) error {
	for _, key := range s.Keys(foldedPrefix(s.shard)) {
		from, ok := parseFoldedKey(s.shard, key)
		if !ok {
			continue
		}
		doc, err := readFolded(ctx, s.Store, s.shard, from)
		if err == nil {
			s.Document(key, true)
			s.folded[from] = doc
			continue
		}
		if !errors.Is(err, ErrDamaged) && !audit.IsDamage(err) {
			return err
		}
		s.Claim(key)
		f := audit.Finding{Kind: audit.Derived, Object: key, What: err.Error(),
			Lost: fmt.Sprintf("nothing: manifests %d to %d are there", from, from+compactionFanIn-1)}
		if from > s.boundary.Seq {
			err = s.Found(ctx, f, "remove the document, so that the block is folded again",
				func(ctx context.Context) error { return s.Store.Delete(ctx, key) })
		} else {
			f.Kind, f.Do = audit.Lost, restoreIt
			f.Lost = fmt.Sprintf("which rows manifests %d to %d have; they were removed", from, from+compactionFanIn-1)
			err = s.Found(ctx, f, "", nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// end looks for manifests that the log has lost at its end. The objects that know of them are whole,
// and they are the evidence.
func (s *shardAudit) end(ctx context.Context) error {
	known, err := lastWitness(ctx, s.Store, s.shard, s.boundary)
	if err != nil || known.seq <= s.head {
		return err
	}
	return s.missing(ctx, s.head+1, known.seq, known.key+" was written after the last of them")
}

// missing reports manifests that are not there.
func (s *shardAudit) missing(ctx context.Context, from, to int64, because string) error {
	what := fmt.Sprintf("manifest %d is missing: %s", from, because)
	if to > from {
		what = fmt.Sprintf("manifests %d to %d are missing: %s", from, to, because)
	}
	return s.lost(ctx, ManifestKey(s.shard, from), what)
}

// continues compares the manifest with the one before it.
func (m *Manifest) continues(prev *Manifest) error {
	if err := m.follows(prev); err != nil {
		return err
	}
	for topic, at := range prev.Next {
		if m.Next[topic] < at {
			return fmt.Errorf("%w: the offset of topic %q falls from %d to %d", ErrDamaged, topic, at, m.Next[topic])
		}
	}
	if m.Committed != nil && prev.Committed != nil && *m.Committed != *prev.Committed+m.Rows {
		return fmt.Errorf("%w: %d rows were committed up to here, and %d by this one, but %d before", ErrDamaged,
			*m.Committed, m.Rows, *prev.Committed)
	}
	return nil
}

// lost reports a manifest.
func (s *shardAudit) lost(ctx context.Context, key, what string) error {
	return s.Found(ctx, audit.Finding{Kind: audit.Lost, Object: key, What: what,
		Lost: "which rows the window has and which input it covers; readers and workers of the shard stop here",
		Do:   restoreIt},
		"", nil)
}

// blocks checks the documents and the objects of merged blocks.
func (s *shardAudit) blocks(ctx context.Context) error {
	for level := 1; level <= compactionLevels; level++ {
		s.whole[level] = map[int64]*compaction{}
		for _, key := range s.Keys(compactionPrefix(s.shard, level)) {
			from, ok := parseCompactionKey(s.shard, level, key)
			if !ok {
				continue
			}
			if err := s.block(ctx, level, from, key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shardAudit) block(ctx context.Context, level int, from int64, key string) error {
	doc, err := readCompaction(ctx, s.Store, s.shard, level, from)
	if err != nil && !errors.Is(err, ErrDamaged) && !audit.IsDamage(err) {
		return err
	}
	what, object := err, key
	if err == nil {
		s.Document(key, doc.Format > 1)
		for _, o := range doc.Objects {
			damage, err := s.Verify(ctx, o.Ref())
			if err != nil {
				return err
			}
			if damage != nil && what == nil {
				what, object = damage, o.Key
			}
		}
	} else {
		s.Claim(key)
	}
	if what == nil {
		s.whole[level][from] = doc
		return nil
	}
	to := from + blockSize(level) - 1
	missing, err := s.parts(ctx, level-1, from, to)
	if err != nil {
		return err
	}
	f := audit.Finding{Kind: audit.Derived, Object: object, What: what.Error(),
		Lost: fmt.Sprintf("nothing: the rows of manifests %d to %d are stored in parts as well", from, to)}
	if missing == nil {
		return s.Found(ctx, f, "remove the merged block, so that its parts are read and merged again",
			func(ctx context.Context) error { return s.Store.Delete(ctx, key) })
	}
	f.Kind = audit.Lost
	f.Lost = fmt.Sprintf("rows of manifests %d to %d: they were merged, and the parts are gone (%v)", from, to, missing)
	f.Do = restoreIt
	return s.Found(ctx, f, "", nil)
}

// parts says what is missing or damaged of the rows of manifests from to to, without blocks above a level.
func (s *shardAudit) parts(ctx context.Context, level int, from, to int64) (missing, err error) {
	for from <= to {
		if level > 0 {
			if doc := s.whole[level][from]; doc != nil && !doc.Skipped {
				from += blockSize(level)
				continue
			}
			next := from + blockSize(level)
			if missing, err := s.parts(ctx, level-1, from, next-1); missing != nil || err != nil {
				return missing, err
			}
			from = next
			continue
		}
		if doc := s.folded[blockStart(1, from)]; doc != nil && from <= s.boundary.Seq {
			for _, w := range doc.Windows {
				for _, o := range w.Objects {
					if damage, err := s.row(ctx, o); damage != nil || err != nil {
						return damage, err
					}
				}
			}
			from = doc.To + 1
			continue
		}
		m := s.log[from]
		if m == nil {
			return fmt.Errorf("manifest %d is not there", from), nil
		}
		for _, o := range m.Objects {
			if damage, err := s.row(ctx, o); damage != nil || err != nil {
				return damage, err
			}
		}
		from++
	}
	return nil, nil
}

// row verifies a row object, once.
func (s *shardAudit) row(ctx context.Context, o Object) (damage, err error) {
	if damage, ok := s.bad[o.Key]; ok {
		return damage, nil
	}
	if damage, err = s.Verify(ctx, o.Ref()); err == nil {
		s.bad[o.Key] = damage
	}
	return damage, err
}

// rows verifies the windows' own objects. One that was merged may be gone.
func (s *shardAudit) rows(ctx context.Context) error {
	for _, seq := range slices.Sorted(maps.Keys(s.log)) {
		if err := s.window(ctx, seq, s.log[seq].Objects); err != nil {
			return err
		}
	}
	for _, from := range slices.Sorted(maps.Keys(s.folded)) {
		for _, w := range s.folded[from].Windows {
			if w.Seq > s.boundary.Seq {
				continue // the manifest is there
			}
			if err := s.window(ctx, w.Seq, w.Objects); err != nil {
				return err
			}
		}
	}
	// Merged rows of manifests that were removed are removed, too, once the grace is over.
	for _, key := range s.Keys(rowsPrefix(s.shard)) {
		if seq, _, ok := parseRowKey(s.shard, key); ok && seq <= s.boundary.Seq && s.isMerged(seq) {
			s.Claim(key)
		}
	}
	return nil
}

// isMerged reports whether a whole merged block has the rows of a window.
func (s *shardAudit) isMerged(seq int64) bool {
	for level := 1; level <= compactionLevels; level++ {
		if doc := s.whole[level][blockStart(level, seq)]; doc != nil && !doc.Skipped {
			return true
		}
	}
	return false
}

// window verifies the row objects of one window.
func (s *shardAudit) window(ctx context.Context, seq int64, objects []Object) error {
	merged := s.isMerged(seq)
	for _, o := range objects {
		if merged && !s.Has(o.Key) {
			continue
		}
		damage, err := s.row(ctx, o)
		if err != nil {
			return err
		}
		if damage == nil {
			continue
		}
		f := audit.Finding{Kind: audit.Lost, Object: o.Key, What: damage.Error(),
			Lost: fmt.Sprintf("%d rows of manifest %d: nodes that did not change since are missing from every "+
				"later generation", o.Rows, seq),
			Do: restoreIt}
		if merged {
			f.Kind, f.Do = audit.Derived, ""
			f.Lost = "nothing: its rows are in a merged block as well"
			err = s.Found(ctx, f, "remove the object, which only readers of old cuts look for",
				func(ctx context.Context) error { return s.Store.Delete(ctx, o.Key) })
		} else {
			err = s.Found(ctx, f, "", nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkpoints verifies the copies of the state. Only the newest two are kept, and the files of older ones may
// be gone.
func (s *shardAudit) checkpoints(ctx context.Context) error {
	numbers, err := CheckpointNumbers(ctx, s.Store, s.shard)
	if err != nil {
		return err
	}
	for i, number := range numbers {
		key := checkpointKey(s.shard, number)
		c, err := ReadCheckpoint(ctx, s.Store, s.shard, number)
		if err != nil && !errors.Is(err, ErrBadCheckpoint) {
			return err
		}
		if err == nil {
			s.Document(key, c.Format > 1)
			if i < len(numbers)-keepCheckpoints {
				continue
			}
			err = s.standsInLog(c)
		} else {
			s.Claim(key)
		}
		object := key
		if c != nil {
			for _, f := range c.Files {
				damage, verr := s.stateFile(ctx, f)
				if verr != nil {
					return verr
				}
				if damage != nil && err == nil {
					err, object = damage, f.Key
				}
			}
		}
		if err == nil {
			continue
		}
		if err := s.Found(ctx, audit.Finding{Kind: audit.Derived, Object: object, What: err.Error(),
			Lost: "nothing but time: after the loss of a disk, the state is restored from the checkpoint before it, " +
				"or read from the topics"},
			fmt.Sprintf("remove the document of checkpoint %d; stop the pipeline before", number),
			func(ctx context.Context) error { return s.Store.Delete(ctx, key) }); err != nil {
			return err
		}
	}
	return nil
}

// standsInLog compares a checkpoint with its manifest.
func (s *shardAudit) standsInLog(c *Checkpoint) error {
	if m := s.log[c.Seq]; m != nil && m.Writer != c.Writer {
		return fmt.Errorf("%w: it knows manifest %d from %q, but %q wrote it", ErrBadCheckpoint, c.Seq, c.Writer,
			m.Writer)
	}
	return nil
}

// stateFile reads a file of a checkpoint through.
func (s *shardAudit) stateFile(ctx context.Context, f CheckpointFile) (damage, err error) {
	s.Claim(f.Key)
	object, err := s.Store.Open(ctx, f.Key)
	if audit.IsDamage(err) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	h := sha256.New()
	buf := make([]byte, max(1, min(object.Size(), 4<<20)))
	n, err := io.CopyBuffer(struct{ io.Writer }{h},
		struct{ io.Reader }{io.NewSectionReader(object, 0, object.Size())}, buf)
	if err != nil {
		return nil, err
	}
	if n != f.Bytes || hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%w: %s (%s) is not what was stored", ErrBadCheckpoint, f.Key, f.Name), nil
	}
	s.Counted(n)
	return nil, nil
}

// published checks the cursor of the embeddings.
func (s *shardAudit) published(ctx context.Context) error {
	key := publishedKey(s.shard)
	if !s.Has(key) {
		return nil
	}
	data, err := sink.ReadAll(ctx, s.Store, key)
	if err != nil {
		return err
	}
	var p Published
	sealed, err := decodeSealed(data, &p)
	s.Document(key, sealed)
	if err == nil && (p.Seq < 0 || p.Generation < 0) {
		err = fmt.Errorf("it says that manifest %d is published with generation %d", p.Seq, p.Generation)
	}
	if err == nil {
		return nil
	}
	return s.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key, What: err.Error(),
		Lost: "nothing: the shard's embeddings are published again"}, "remove the cursor",
		func(ctx context.Context) error { return s.Store.Delete(ctx, key) })
}

// Missing returns objects of the newest rows of a shard that are not in the store with their size, among at
// most limit objects: a quick look, which reads none of them.
func Missing(ctx context.Context, store sink.Store, shard int, head int64, limit int) (missing []string, err error) {
	var newest []*Segment
	for s, err := range Segments(ctx, store, shard, max(0, head-int64(limit)), head) {
		if err != nil {
			return nil, err
		}
		newest = append(newest, s)
	}
	for _, s := range slices.Backward(newest) {
		for _, o := range s.objects {
			if limit--; limit < 0 {
				return missing, nil
			}
			there, err := hasSize(ctx, store, o)
			if err != nil {
				return nil, err
			}
			if !there {
				missing = append(missing, o.Key)
			}
		}
	}
	return missing, nil
}

func hasSize(ctx context.Context, store sink.Store, o Object) (bool, error) {
	object, err := store.Open(ctx, o.Key)
	if errors.Is(err, sink.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return object.Size() == o.Bytes, object.Close()
}
