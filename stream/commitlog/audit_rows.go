package commitlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"giantstream/sink"
	"giantstream/sink/audit"
)

// brokenBlock is a merged block that is not whole.
type brokenBlock struct {
	block
	// key is the document's, object what is damaged: the document, or what it names.
	key, object string
	damage      error
	doc         *compaction // nil if it is the document
}

// blocks checks the documents and the objects of merged blocks.
func (s *shardAudit) blocks(ctx context.Context) error {
	if err := s.readRemoved(ctx); err != nil {
		return err
	}
	var broken []*brokenBlock
	for level := 1; level <= compactionLevels; level++ {
		s.whole[level] = map[int64]*compaction{}
		for _, key := range s.Keys(compactionPrefix(s.shard, level)) {
			from, ok := parseCompactionKey(s.shard, level, key)
			if !ok {
				continue
			}
			b := &brokenBlock{block: block{level, from}, key: key, object: key}
			if err := s.verifyBlock(ctx, b); err != nil {
				return err
			}
			if b.damage != nil {
				broken = append(broken, b)
			}
		}
	}
	for _, b := range broken {
		if err := s.foundBlock(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// verifyBlock notes a block as whole, or what is damaged of it.
func (s *shardAudit) verifyBlock(ctx context.Context, b *brokenBlock) error {
	doc, err := readCompaction(ctx, s.Store, s.shard, b.level, b.from)
	if err != nil && !errors.Is(err, ErrDamaged) && !audit.IsDamage(err) {
		return err
	}
	if b.damage = err; b.damage != nil {
		s.Claim(b.key)
		return nil //nolint:nilerr // the block has it
	}
	b.doc = doc
	s.Document(b.key, doc.Format > 1)
	for _, o := range doc.Objects {
		damage, err := s.Verify(ctx, o.Ref())
		if err != nil {
			return err
		}
		if damage != nil && b.damage == nil {
			b.damage, b.object = damage, o.Key
		}
	}
	if b.damage == nil {
		s.whole[b.level][b.from] = doc
	}
	return nil
}

// foundBlock reports a block that is not whole.
func (s *shardAudit) foundBlock(ctx context.Context, b *brokenBlock) error {
	if b.doc != nil && s.isMerged(b.level, b.from) {
		old := b.doc.Format < removalCompactionFormat
		return s.mergedAway(ctx, b.object, b.damage, b.level, b.end(), old)
	}
	missing, err := s.parts(ctx, b.level-1, b.from, b.end())
	if err != nil {
		return err
	}
	f := audit.Finding{Kind: audit.Derived, Object: b.object, What: b.damage.Error(),
		Lost: fmt.Sprintf("nothing: the rows of manifests %d to %d are stored in parts as well", b.from, b.end())}
	if missing == nil {
		return s.Found(ctx, f, "remove the merged block, so that its parts are read and merged again",
			func(ctx context.Context) error { return s.Store.Delete(ctx, b.key) })
	}
	f.Kind = audit.Lost
	f.Lost = fmt.Sprintf("rows of manifests %d to %d: they were merged, and the parts are gone (%v)", b.from, b.end(),
		missing)
	f.Do = restoreIt
	return s.Found(ctx, f, "", nil)
}

// readRemoved reads which merged rows may be gone.
func (s *shardAudit) readRemoved(ctx context.Context) (err error) {
	key := removedKey(s.shard)
	s.removed, err = readRemoved(ctx, s.Store, s.shard)
	if err == nil && s.removed.stored != nil {
		s.Document(key, true)
	}
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	s.Claim(key)
	return s.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key, What: err.Error(),
		Lost: "which merged rows were removed on purpose"}, "note that any of those up to now may have been",
		func(ctx context.Context) error { return s.removed.extend(ctx, s.Store, 0, s.head) })
}

// mergedAway reports an object whose rows a larger block has as well. It may be gone if a compactor has removed it;
// releases that wrote the older formats did not note that.
func (s *shardAudit) mergedAway(ctx context.Context, key string, damage error, level int, end int64, old bool) error {
	f := audit.Finding{Kind: audit.Derived, Object: key, What: damage.Error(),
		Lost: "nothing: its rows are in a merged block as well"}
	if s.Has(key) {
		return s.Found(ctx, f, "remove the object, which only readers of old cuts look for",
			func(ctx context.Context) error {
				if err := s.removed.extend(ctx, s.Store, level, end); err != nil {
					return err
				}
				return s.Store.Delete(ctx, key)
			})
	}
	if old || s.removed.unknown || end <= s.removed.Through[level] {
		return nil
	}
	return s.Found(ctx, f, "note that it was removed; only readers of old cuts look for it",
		func(ctx context.Context) error { return s.removed.extend(ctx, s.Store, level, end) })
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
		if err := s.window(ctx, seq, s.log[seq].Objects, s.log[seq].Format < removalManifestFormat); err != nil {
			return err
		}
	}
	for _, from := range slices.Sorted(maps.Keys(s.folded)) {
		for _, w := range s.folded[from].Windows {
			if w.Seq > s.boundary.Seq {
				continue // the manifest is there
			}
			if err := s.window(ctx, w.Seq, w.Objects, s.folded[from].Format < removalFoldedFormat); err != nil {
				return err
			}
		}
	}
	// Merged rows of manifests that were removed are removed, too, once the grace is over.
	for _, key := range s.Keys(rowsPrefix(s.shard)) {
		if seq, _, ok := parseRowKey(s.shard, key); ok && seq <= s.boundary.Seq && s.isMerged(0, seq) {
			s.Claim(key)
		}
	}
	return nil
}

// isMerged reports whether a whole merged block above a level has the rows of a manifest.
func (s *shardAudit) isMerged(above int, seq int64) bool {
	for level := above + 1; level <= compactionLevels; level++ {
		if doc := s.whole[level][blockStart(level, seq)]; doc != nil && !doc.Skipped {
			return true
		}
	}
	return false
}

// window verifies the row objects of one window. old: its document is of a release that did not note what it removed.
func (s *shardAudit) window(ctx context.Context, seq int64, objects []Object, old bool) error {
	merged := s.isMerged(0, seq)
	for _, o := range objects {
		damage, err := s.row(ctx, o)
		if err != nil {
			return err
		}
		if damage == nil {
			continue
		}
		if merged {
			err = s.mergedAway(ctx, o.Key, damage, 0, block{1, blockStart(1, seq)}.end(), old)
		} else {
			err = s.Found(ctx, audit.Finding{Kind: audit.Lost, Object: o.Key, What: damage.Error(),
				Lost: fmt.Sprintf("%d rows of manifest %d of shard %d: nodes that did not change since are missing "+
					"from every later generation", o.Rows, seq, s.shard), Do: restoreIt}, "", nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
