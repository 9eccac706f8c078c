package commitlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/stream/commitlog/checkpoint"
)

// AuditIdentity checks pipeline.json and returns the number of shards. If the identity cannot be read, it is
// the number of shards that the store has objects of.
func AuditIdentity(ctx context.Context, a *audit.Audit) (shards int, err error) {
	id, err := LoadIdentity(ctx, a.Store)
	var data []byte
	if err == nil {
		data, err = sink.ReadAll(ctx, a.Store, identityKey)
	}
	var sealed bool
	if err == nil {
		sealed, err = seal.Decode(data, seal.Place{Key: identityKey}, &Identity{})
	}
	if err == nil {
		err = isForeign(ctx, a, id)
	}
	if err == nil {
		a.Document(identityKey, sealed)
		return id.Shards, nil
	}
	_, isStore := errors.AsType[*sink.Error](err)
	if isStore && !audit.IsDamage(err) || errors.Is(err, ErrGroupCommit) {
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

// isForeign returns ErrDamaged if the identity is of another pipeline than the logs. The rest of the audit then goes by
// the logs: who repairs must not take a whole store for that of another pipeline.
func isForeign(ctx context.Context, a *audit.Audit, id Identity) error {
	owner := ""
	for p := range id.Shards {
		keys := a.Keys(manifestPrefix(p))
		if len(keys) == 0 {
			continue
		}
		data, err := sink.ReadAll(ctx, a.Store, keys[len(keys)-1])
		if err != nil && !audit.IsDamage(err) {
			return err
		}
		switch said := seal.PlaceOf(data).Pipeline; {
		case said == id.ID && said != "":
			return nil
		case said != "":
			owner = said
		}
	}
	if owner == "" {
		return nil // there is no manifest, or none that says
	}
	a.Store.SetPipeline(owner)
	return fmt.Errorf("%w: it is that of pipeline %s, and the manifests are of pipeline %s", ErrDamaged, id.ID, owner)
}

// AuditShard checks all that a shard has in the store: manifests and their chain, rows, merged blocks, checkpoints, and
// the cursors of the embeddings.
func AuditShard(ctx context.Context, a *audit.Audit, shard int) error {
	s := &shardAudit{Audit: a, shard: shard, log: map[int64]*Manifest{}, folded: map[int64]*folded{},
		bad: map[string]error{}}
	for _, step := range []func(context.Context) error{s.manifests, s.foldedBlocks, s.blocks, s.rows, s.checkpoints,
		s.published(Served), s.published(Canary)} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("verify shard %d: %w", shard, err)
		}
	}
	return nil
}

// checkpoints verifies the copies of the state beside the log.
func (s *shardAudit) checkpoints(ctx context.Context) error {
	return checkpoint.Audit(ctx, s.Audit, s.shard, func(seq int64) string {
		if m := s.log[seq]; m != nil {
			return m.Writer
		}
		return ""
	})
}

// restoreIt is what to do about rows and manifests: they are made of nothing else in the store.
const restoreIt = "Restore the object from a backup of the store. Without one, build a new store from the topics or " +
	"files."

type shardAudit struct {
	*audit.Audit
	shard int
	// boundary is that of the log, if it is known. Nothing is expected of manifests up to it.
	boundary Boundary
	known    bool
	log      map[int64]*Manifest // those that are whole
	head     int64               // the number of the newest one, damaged ones included
	folded   map[int64]*folded   // whole folded blocks, by their first manifest
	// whole are the merged blocks whose document and objects are whole.
	whole [compactionLevels + 1]map[int64]*compaction
	bad   map[string]error // row objects that were verified, nil for whole ones
	// removed says which merged rows may be gone.
	removed removedNote
}

// manifests reads the log from its boundary and follows the chain.
func (s *shardAudit) manifests(ctx context.Context) error {
	if err := s.readBoundary(ctx); err != nil {
		return err
	}
	var prev *Manifest
	if s.head = s.boundary.Seq; s.head > 0 {
		prev = &Manifest{Seq: s.head, Committed: s.boundary.Committed, digest: s.boundary.Digest}
	}
	for _, key := range s.Keys(manifestPrefix(s.shard)) {
		seq, err := manifestSeq(s.shard, key)
		if err != nil {
			continue // nobody claims it
		}
		if seq <= s.boundary.Seq {
			s.Claim(key) // it is removed sooner or later
			continue
		}
		if !s.known && s.head == 0 {
			s.head = seq - 1 // how much was removed before is what the boundary knew
		}
		if s.head < seq-1 {
			if err := s.missing(ctx, s.head+1, seq-1, fmt.Sprintf("manifest %d is there", seq)); err != nil {
				return err
			}
			prev = nil
		}
		m, err := s.manifest(ctx, seq, key, prev)
		if err != nil {
			return err
		}
		if m != nil {
			s.log[seq] = m
		}
		s.head, prev = seq, m
	}
	if m := s.log[s.head]; m != nil && m.Generation > 0 {
		s.Generations[m.Generation] = ManifestKey(s.shard, m.Seq)
	}
	if !s.known {
		if err := s.lostBoundary(ctx); err != nil {
			return err
		}
	}
	return s.end(ctx)
}

// manifest checks one manifest, and returns it if it is whole.
func (s *shardAudit) manifest(ctx context.Context, seq int64, key string, prev *Manifest) (*Manifest, error) {
	data, err := sink.ReadAll(ctx, s.Store, key)
	if err != nil && !audit.IsDamage(err) {
		return nil, err
	}
	var m *Manifest
	if err == nil {
		m, err = Decode(data, sink.PlaceOf(s.Store, key))
	}
	if err == nil && (m.Shard != s.shard || m.Seq != seq) {
		err = fmt.Errorf("it holds manifest %d of shard %d", m.Seq, m.Shard)
	}
	if err != nil {
		s.Claim(key)
		return nil, s.lost(ctx, key, err.Error())
	}
	_, sealed, _ := seal.Open(data, sink.PlaceOf(s.Store, key))
	s.Document(key, sealed)
	if prev != nil {
		if err := m.continues(prev); err != nil {
			return m, s.lost(ctx, key, err.Error())
		}
	}
	return m, nil
}

// readBoundary reads the boundary of the log.
func (s *shardAudit) readBoundary(ctx context.Context) error {
	b, err := ReadBoundary(ctx, s.Store, s.shard)
	if errors.Is(err, ErrDamaged) || audit.IsDamage(err) {
		s.Claim(boundaryKey(s.shard))
		return nil
	}
	if err == nil && b.Seq > 0 && s.Has(boundaryKey(s.shard)) {
		s.Document(boundaryKey(s.shard), true)
	}
	s.boundary, s.known = b, err == nil
	return err
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
	if oldest.Committed != nil {
		before := *oldest.Committed - oldest.Changes()
		b.Committed = &before
	}
	s.boundary = b
	return s.Found(ctx, f, fmt.Sprintf("write it again, at manifest %d; stop the pipeline before", b.Seq),
		func(ctx context.Context) error {
			if b.Seq == 0 { // nothing was removed
				return s.Store.Delete(ctx, key)
			}
			data, err := seal.JSON(b, sink.PlaceOf(s.Store, key))
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
	what := fmt.Sprintf("manifest %d of shard %d is missing: %s", from, s.shard, because)
	if to > from {
		what = fmt.Sprintf("manifests %d to %d of shard %d are missing: %s", from, to, s.shard, because)
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
	if m.Committed != nil && prev.Committed != nil && *m.Committed != *prev.Committed+m.Changes() {
		return fmt.Errorf("%w: %d rows were committed up to here, and %d by this one, but %d before", ErrDamaged,
			*m.Committed, m.Changes(), *prev.Committed)
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

// published checks the cursor of a topic.
func (s *shardAudit) published(outlet Outlet) func(context.Context) error {
	return func(ctx context.Context) error { return s.cursor(ctx, outlet) }
}

// cursor checks one of the cursors of the embeddings.
func (s *shardAudit) cursor(ctx context.Context, outlet Outlet) error {
	key := outlet.key(s.shard)
	if !s.Has(key) {
		return nil
	}
	data, err := sink.ReadAll(ctx, s.Store, key)
	if err != nil {
		return err
	}
	var p Published
	sealed, err := seal.Decode(data, sink.PlaceOf(s.Store, key), &p)
	s.Document(key, sealed)
	if err == nil && (p.Seq < 0 || p.Generation < 0) {
		err = fmt.Errorf("it says that manifest %d is published with generation %d", p.Seq, p.Generation)
	}
	if err == nil {
		named := s.Generations
		if outlet == Canary {
			named = s.Canaries
		}
		if p.Generation > 0 {
			named[p.Generation] = key
		}
		return nil
	}
	return s.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key, What: err.Error(),
		Lost: "nothing: the shard's embeddings are published again"}, "remove the cursor",
		func(ctx context.Context) error { return s.Store.Delete(ctx, key) })
}
