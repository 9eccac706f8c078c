package shard

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// memTablesBytes is what the memtables of all states of a process may take: what is not in their
	// files yet. With 3 states, each memtable has 16 MiB, with 32 it has 1.5.
	memTablesBytes = 96 << 20
	// Bounds of one memtable. A batch of more than half of one is flushed by itself, so small ones make
	// small files; large ones gain nothing.
	memTableMin = 1 << 20
	memTableMax = 16 << 20
	// stateMemTables is how many memtables a state has under load: one is filled while the other is
	// written.
	stateMemTables = 2
)

// Cache is memory that the states of several shards share: for blocks read from disk, open windows and
// memtables.
type Cache struct {
	blocks *pebble.Cache
	window windowMemory
	states atomic.Int64 // that share it, 0 for unknown
}

// cacheBytes is for blocks that were read. Links and texts of nodes that get new links are read all the
// time.
const cacheBytes = 64 << 20

// NewCache makes a cache for the shards of one process. Release it when they are closed.
func NewCache() *Cache {
	return &Cache{blocks: pebble.NewCache(cacheBytes), window: windowMemory{limit: windowMemoryBytes}}
}

// LimitWindows sets how many bytes the open windows of all shards may take, before the first shard is
// opened; the default is 48 MiB.
func (c *Cache) LimitWindows(bytes int64) { c.window.limit = bytes }

// Share sets how many states share the memory of the memtables. It applies to states that are opened later.
// Without it, each shard assumes that the process has all shards of the pipeline.
func (c *Cache) Share(states int) { c.states.Store(int64(states)) }

// sharing returns how many states share the memory, for a pipeline with the given number of shards.
func (c *Cache) sharing(shards int) int {
	if n := c.states.Load(); n > 0 {
		return int(n)
	}
	return max(shards, 1)
}

// memTableBytes returns the size of one memtable if the given number of states share the memory.
func memTableBytes(states int) int {
	return min(max(memTablesBytes/(stateMemTables*states), memTableMin), memTableMax)
}

// addMemTables makes room for the memtables of one more state. The engine takes them out of the cache,
// and those of a few shards would leave nothing for blocks. The room is given back by the function
// returned, while the state still has the cache.
func (c *Cache) addMemTables(bytes int) (giveBack func()) {
	return c.blocks.Reserve(-stateMemTables * bytes)
}

// Release gives the memory back.
func (c *Cache) Release() { c.blocks.Unref() }
