package milvus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"giantstream/sink/vectordb"
)

// The aliases that a process writes through are called COLLECTION_w_SESSION_TURN.
const writeInfix = "_w_"

// errRace: two processes opened the sink at once, and each has dropped the other's aliases.
var errRace = errors.New("another process opens this sink at this moment")

// writer is the name by which this process reads and writes a collection. mu is held.
func (x *Index) writer(collection string) string {
	return fmt.Sprintf("%s%s%s_%d", collection, writeInfix, x.session, x.turn)
}

// isOwnAlias reports whether this process has made an alias.
func (x *Index) isOwnAlias(collection, alias string) bool {
	return strings.HasPrefix(alias, collection+writeInfix+x.session+"_")
}

// acquire takes the sink over from any other process. Each makes its alias before it drops those of others, so that of
// two that do so at once one at least is dropped.
func (x *Index) acquire(ctx context.Context) error {
	x.turn++
	own := x.sinkCollection()
	if err := x.fence(ctx, own); err != nil {
		return err
	}
	err := x.check(ctx)
	if errors.Is(err, vectordb.ErrTakenOver) {
		return errRace
	}
	return err
}

// fence makes the alias of this turn the only one that leads writers to a collection.
func (x *Index) fence(ctx context.Context, collection string) error {
	to := x.writer(collection)
	all, err := x.aliases(ctx, collection)
	if err != nil {
		return err
	}
	if !slices.Contains(all, to) {
		if err := x.createAlias(ctx, to, collection); err != nil {
			return err
		}
		if all, err = x.aliases(ctx, collection); err != nil {
			return err
		}
	}
	return x.dropWriters(ctx, collection, all, to)
}

// dropWriters drops the aliases of writers, but for one.
func (x *Index) dropWriters(ctx context.Context, collection string, all []string, keep string) error {
	for _, alias := range all {
		if alias == keep || !strings.HasPrefix(alias, collection+writeInfix) {
			continue
		}
		if err := x.dropAlias(ctx, alias); err != nil {
			return err
		}
	}
	return nil
}

// check returns ErrTakenOver if another process has opened the sink.
func (x *Index) check(ctx context.Context) error {
	all, err := x.aliases(ctx, x.sinkCollection())
	if err != nil {
		return err
	}
	if !slices.Contains(all, x.writer(x.sinkCollection())) {
		return vectordb.ErrTakenOver
	}
	return nil
}

// renew changes to new aliases, so that nothing arrives any more that was sent to the present ones. A process that has
// been replaced must not come back by this. So it yields to any other: the new alias is made before it looks, and the
// other process, which looks after it has made its own, drops it otherwise.
func (x *Index) renew(ctx context.Context) error {
	own := x.sinkCollection()
	all, err := x.aliases(ctx, own)
	if err != nil {
		return err
	}
	owner := false
	for _, alias := range all {
		owner = owner || x.isOwnAlias(own, alias)
	}
	if !owner {
		return vectordb.ErrTakenOver
	}
	x.turn++
	to := x.writer(own)
	if err := x.createAlias(ctx, to, own); err != nil {
		return err
	}
	if all, err = x.aliases(ctx, own); err != nil {
		return err
	}
	for _, alias := range all {
		if strings.HasPrefix(alias, own+writeInfix) && !x.isOwnAlias(own, alias) {
			_ = x.dropAlias(ctx, to) // the other process drops it if this fails
			return vectordb.ErrTakenOver
		}
	}
	if !slices.Contains(all, to) {
		return vectordb.ErrTakenOver
	}
	if err := x.dropWriters(ctx, own, all, to); err != nil {
		return err
	}
	for table := range x.tables {
		switch err := x.fence(ctx, table); {
		case missing(err):
			delete(x.tables, table)
		case err != nil:
			return err
		}
	}
	x.suspect.Store(false)
	return nil
}
