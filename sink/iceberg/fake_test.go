package iceberg_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"

	iceberggo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"giantstream/sink/vectordb/vectordbtest"
)

// fake is a catalog in memory with one table.
type fake struct {
	mu   sync.Mutex
	meta table.Metadata
	// rnd, if not nil, says when somebody maintains the table.
	rnd  *rand.Rand
	late []func()
	// mains are the metadata of all commits that have set main.
	mains map[table.Metadata]bool
}

func (f *fake) CreateNamespace(context.Context, table.Identifier, iceberggo.Properties) error {
	return nil
}

func (f *fake) CreateTable(_ context.Context, ident table.Identifier, schema *iceberggo.Schema,
	opts ...catalog.CreateTableOpt) (*table.Table, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.meta != nil {
		return nil, catalog.ErrTableAlreadyExists
	}
	cfg := catalog.NewCreateTableCfg()
	for _, o := range opts {
		o(&cfg)
	}
	meta, err := table.NewMetadata(schema, iceberggo.UnpartitionedSpec, table.UnsortedSortOrder, "memory://table",
		cfg.Properties)
	f.meta = meta
	return table.New(ident, meta, "", nil, nil), err
}

func (f *fake) LoadTable(_ context.Context, ident table.Identifier) (*table.Table, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.meta == nil {
		return nil, catalog.ErrNoSuchTable
	}
	return table.New(ident, f.meta, "", nil, nil), nil
}

func (f *fake) CommitTable(_ context.Context, _ table.Identifier, requirements []table.Requirement,
	updates []table.Update) (table.Metadata, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rnd != nil && f.rnd.IntN(40) == 0 {
		f.maintain()
	}
	for _, r := range requirements {
		if err := r.Validate(f.meta); err != nil {
			return nil, "", fmt.Errorf("%w: %w", table.ErrCommitFailed, err)
		}
	}
	// As they travel.
	data, err := json.Marshal(updates)
	if err != nil {
		return nil, "", err
	}
	var got table.Updates
	if err := json.Unmarshal(data, &got); err != nil {
		return nil, "", err
	}
	meta, err := table.UpdateTableMetadata(f.meta, got, "")
	if err != nil {
		return nil, "", err
	}
	f.meta = meta
	if f.mains == nil {
		f.mains = map[table.Metadata]bool{}
	}
	if meta.CurrentSnapshot() != nil {
		f.mains[meta] = true
	}
	return meta, "", nil
}

// maintain rewrites main, and expires what no ref names.
func (f *fake) maintain() {
	refs := maps.Collect(f.meta.Refs())
	main, ok := refs[table.MainBranch]
	if !ok {
		return
	}
	parent := f.meta.SnapshotByID(main.SnapshotID)
	s := *parent
	s.SnapshotID, s.ParentSnapshotID = rand.Int64(), &parent.SnapshotID
	s.SequenceNumber = f.meta.LastSequenceNumber() + 1
	s.Summary = &table.Summary{Operation: table.OpReplace}
	var old []int64
	for _, s := range f.meta.Snapshots() {
		named := s.SnapshotID == parent.SnapshotID
		for _, r := range refs {
			named = named || r.SnapshotID == s.SnapshotID
		}
		if !named && f.rnd.IntN(2) == 0 {
			old = append(old, s.SnapshotID)
		}
	}
	meta, err := table.UpdateTableMetadata(f.meta, []table.Update{table.NewAddSnapshotUpdate(&s),
		table.NewSetSnapshotRefUpdate(table.MainBranch, s.SnapshotID, table.BranchRef, 0, 0, 0),
		table.NewRemoveSnapshotsUpdate(old, false)}, "")
	if err != nil {
		panic(err)
	}
	f.meta = meta
}

var errAway = errors.New("no answer")

// faults are those of a process, at its files and at its catalog.
type faults struct {
	rnd        *rand.Rand
	kill, fail float64
	dead       bool
	calm       *bool
}

// call fails before or after do, or not at all.
func (f *faults) call(do func() error) error {
	x := f.rnd.Float64()
	switch {
	case f.dead:
		return vectordbtest.ErrKilled
	case *f.calm || x > f.kill+f.fail:
		return do()
	}
	f.dead = x < f.kill
	if f.rnd.IntN(2) == 0 {
		if err := do(); err != nil {
			return err
		}
	}
	if f.dead {
		return vectordbtest.ErrKilled
	}
	return errAway
}

// faultyCatalog is the catalog on a bad connection.
type faultyCatalog struct {
	*fake
	faults *faults
}

func (c *faultyCatalog) LoadTable(ctx context.Context, ident table.Identifier) (t *table.Table, err error) {
	failed := c.faults.call(func() error { t, err = c.fake.LoadTable(ctx, ident); return err })
	return t, failed
}

func (c *faultyCatalog) CreateTable(ctx context.Context, ident table.Identifier, schema *iceberggo.Schema,
	opts ...catalog.CreateTableOpt) (t *table.Table, err error) {
	failed := c.faults.call(func() error { t, err = c.fake.CreateTable(ctx, ident, schema, opts...); return err })
	return t, failed
}

func (c *faultyCatalog) CommitTable(ctx context.Context, ident table.Identifier, r []table.Requirement,
	u []table.Update) (meta table.Metadata, loc string, err error) {
	if !*c.faults.calm && c.faults.rnd.IntN(12) == 0 { // it arrives later than others
		c.late = append(c.late, func() { _, _, _ = c.fake.CommitTable(ctx, ident, r, u) })
		return nil, "", errAway
	}
	if len(c.late) > 0 && c.faults.rnd.IntN(3) == 0 {
		c.late[0]()
		c.late = c.late[1:]
	}
	failed := c.faults.call(func() error { meta, loc, err = c.fake.CommitTable(ctx, ident, r, u); return err })
	return meta, loc, failed
}
