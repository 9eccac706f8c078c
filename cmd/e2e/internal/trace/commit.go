package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// manifest is docs/format/manifest.md, as far as the rules need it.
type manifest struct {
	Seq     int64            `json:"seq"`
	Writer  string           `json:"writer"`
	Next    map[string]int64 `json:"next_offsets"`
	Objects []named          `json:"objects"`
}

// named is an object in a document.
type named struct {
	Key string `json:"key"`
}

func names(objects []named, key string) bool { return slices.Contains(objects, named{key}) }

// manifestRule: manifests are created once, without gaps, when all that they name is there. Offsets
// never decrease.
func (c *Checker) manifestRule(p int, number int64, key string) rule {
	s := c.shard(p)
	return rule{
		written: func(data []byte, _ object, existed bool) any {
			c.fixed("ManifestsNeverChange", key, existed)
			if number <= s.boundary {
				return nil // a late one of a number that may have been removed; nobody believes it
			}
			m := &manifest{}
			if !c.parse(key, data, m) {
				return nil
			}
			if number != s.head+1 && !existed {
				c.violated("NoGap", "%s was created when the head was %d", key, s.head)
			}
			c.namesObjects(m, number, key)
			c.offsetsAscend(s.manifests[number-1], m, key)
			s.manifests[number] = m
			s.head = max(s.head, number)
			return m
		},
		removed: func(object) {
			if number > s.boundary {
				c.violated("ManifestsNeverChange", "%s was removed, the boundary is at %d", key, s.boundary)
			}
		},
	}
}

// namesObjects checks that a manifest names objects of its own window, which exist.
func (c *Checker) namesObjects(m *manifest, number int64, key string) {
	for _, o := range m.Objects {
		if !c.exists(o.Key) {
			c.violated("NamedObjectsExist", "%s names %s, which does not exist", key, o.Key)
		}
		if seq, session := rowKey(o.Key); seq != number || !strings.HasSuffix(m.Writer, "-"+session) {
			c.violated("NamedObjectsExist", "%s, written by %s, names %s", key, m.Writer, o.Key)
		}
	}
}

// offsetsAscend compares a manifest with the one before it, nil if that is not known.
func (c *Checker) offsetsAscend(before, m *manifest, key string) {
	if before == nil {
		return
	}
	for topic, next := range before.Next {
		if m.Next[topic] < next {
			c.violated("OffsetsNeverDecrease", "%s has offset %d of topic %s, the manifest before it %d",
				key, m.Next[topic], topic, next)
		}
	}
}

// boundary is docs/format/manifest.md, "Boundary", as far as the rules need it.
type boundary struct {
	Seq int64 `json:"seq"`
}

// boundaryRule: the boundary only ascends, and stays. It stops before the head, the manifests of both checkpoints that
// are kept and the cuts of the generations. Every block up to it has a document that replaces its manifests.
func (c *Checker) boundaryRule(p int, key string) rule {
	s := c.shard(p)
	return rule{
		written: func(data []byte, _ object, _ bool) any {
			var b boundary
			if !c.parse(key, data, &b) {
				return nil
			}
			if b.Seq <= s.boundary {
				c.violated("BoundaryAscends", "%s goes from manifest %d to %d", key, s.boundary, b.Seq)
			}
			if b.Seq >= s.head {
				c.violated("HeadIsFound", "%s is at manifest %d, the head is %d", key, b.Seq, s.head)
			}
			newest, second := s.newestTwo()
			for _, kept := range []*checkpoint{s.checkpoints[newest], s.checkpoints[second]} {
				if kept != nil && kept.Seq <= b.Seq {
					c.violated("NothingLost", "%s is at manifest %d, a checkpoint stands at %d", key, b.Seq, kept.Seq)
				}
			}
			for doc, cut := range c.cuts {
				if cut[strconv.Itoa(p)] < b.Seq {
					c.violated("NothingLost", "%s is at manifest %d, the cut of %s is %v", key, b.Seq, doc, cut)
				}
			}
			for from := int64(1); from <= b.Seq; from += fanIn {
				if doc := c.block(p, 1, from); doc == nil || doc.Skipped && !c.exists(foldedKey(p, from)) {
					c.violated("NothingLost", "%s is at manifest %d, and the block from %d on has no document", key,
						b.Seq, from)
				}
			}
			s.boundary = b.Seq
			return b
		},
		removed: func(object) { c.violated("BoundaryAscends", "%s was removed", key) },
	}
}

func foldedKey(p int, from int64) string { return fmt.Sprintf("shards/%d/folded/%020d.json", p, from) }

// foldedRule: a folded block's document is created once and stays.
func (c *Checker) foldedRule(key string) rule {
	return rule{
		written: func(_ []byte, _ object, existed bool) any {
			c.fixed("BlocksNeverChange", key, existed)
			return nil
		},
		removed: func(object) { c.violated("BlocksNeverChange", "%s was removed", key) },
	}
}

// rowsRule: an object of rows never changes. It may go if its window has a manifest that does not
// name it, or when it has been merged.
func (c *Checker) rowsRule(p int, number int64, key string) rule {
	return rule{
		written: func(_ []byte, _ object, existed bool) any {
			c.fixed("NamedObjectsExist", key, existed)
			return nil
		},
		removed: func(object) {
			m := c.shard(p).manifests[number]
			switch {
			case m == nil:
				c.violated("OnlyOrphansGo", "%s was removed, and window %d has no manifest yet", key, number)
			case names(m.Objects, key) && !c.superseded(p, 1, number):
				c.violated("NamedObjectsExist", "%s was removed, which its manifest names", key)
			}
		},
	}
}
