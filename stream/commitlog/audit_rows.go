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
		if merged {
			err = s.Found(ctx, audit.Finding{Kind: audit.Derived, Object: o.Key, What: damage.Error(),
				Lost: "nothing: its rows are in a merged block as well"},
				"remove the object, which only readers of old cuts look for",
				func(ctx context.Context) error { return s.Store.Delete(ctx, o.Key) })
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
