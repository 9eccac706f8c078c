package trace

import (
	"fmt"
	"strconv"
)

// compacted is docs/format/manifest.md, "Merged blocks", as far as the rules need it.
type compacted struct {
	To      int64   `json:"to"`
	Skipped bool    `json:"skipped"`
	Objects []named `json:"objects"`
}

// Blocks of level l have 64^l manifests; there are three levels.
const (
	fanIn  = 64
	levels = 3
)

func blockSize(level int) int64 {
	n := int64(1)
	for range level {
		n *= fanIn
	}
	return n
}

func blockKey(p, level int, from int64) string {
	return fmt.Sprintf("shards/%d/compacted/%d-%020d.json", p, level, from)
}

// block returns the document of the block of a level that has a manifest, nil if there is none.
func (c *Checker) block(p, level int, seq int64) *compacted {
	from := (seq-1)/blockSize(level)*blockSize(level) + 1
	doc, _ := c.objects[blockKey(p, level, from)].doc.(*compacted)
	return doc
}

// superseded says whether the parts of the block of a level that has a manifest may go: the block
// is merged, and no cut needs its parts. The grace for readers cannot be seen from the store.
func (c *Checker) superseded(p, level int, seq int64) bool {
	if level > levels {
		return false
	}
	doc := c.block(p, level, seq)
	if doc == nil || doc.Skipped || len(c.cuts) == 0 {
		return false
	}
	for _, cut := range c.cuts {
		if doc.To > cut[strconv.Itoa(p)] {
			return false
		}
	}
	return true
}

// blockRule: the document of a block is created once, when all its manifests and all that it names
// are there.
func (c *Checker) blockRule(p, level int, from int64, key string) rule {
	return rule{
		written: func(data []byte, _ object, existed bool) any {
			c.fixed("BlocksNeverChange", key, existed)
			doc := &compacted{}
			if !c.parse(key, data, doc) {
				return nil
			}
			if (from-1)%blockSize(level) != 0 || doc.To != from+blockSize(level)-1 || doc.To > c.shard(p).head {
				c.violated("BlockIsComplete", "%s merges manifests %d to %d, the head is %d", key, from, doc.To,
					c.shard(p).head)
			}
			for _, o := range doc.Objects {
				if !c.exists(o.Key) {
					c.violated("BlockIsComplete", "%s names %s, which does not exist", key, o.Key)
				}
			}
			return doc
		},
		removed: func(object) { c.violated("BlocksNeverChange", "%s was removed", key) },
	}
}

// mergedRule: a merged object never changes. It may go if its block's document does not name it, or
// when it has been merged itself.
func (c *Checker) mergedRule(p, level int, from int64, key string) rule {
	return rule{
		written: func(_ []byte, _ object, existed bool) any {
			c.fixed("BlocksNeverChange", key, existed)
			return nil
		},
		removed: func(object) {
			doc := c.block(p, level, from)
			if (doc == nil || names(doc.Objects, key)) && !c.superseded(p, level+1, from) {
				c.violated("OnlySupersededGo", "%s was removed", key)
			}
		},
	}
}

// generationRule follows the cuts that must stay readable.
func (c *Checker) generationRule(key string) rule {
	return rule{
		written: func(data []byte, _ object, _ bool) any {
			var doc struct {
				Cut map[string]int64 `json:"cut"`
			}
			if c.parse(key, data, &doc) {
				c.cuts[key] = doc.Cut
			}
			return nil
		},
		removed: func(object) { delete(c.cuts, key) },
	}
}

// atoi returns 0 for what is no number.
func atoi(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
