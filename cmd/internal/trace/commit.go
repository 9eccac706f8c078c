package trace

import (
	"slices"
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
			m := &manifest{}
			if !c.parse(key, data, m) {
				return nil
			}
			if number != s.head+1 && !existed {
				c.violated("NoGap", "%s was created when the head was %d", key, s.head)
			}
			for _, o := range m.Objects {
				if !c.exists(o.Key) {
					c.violated("NamedObjectsExist", "%s names %s, which does not exist", key, o.Key)
				}
				if seq, session := rowKey(o.Key); seq != number || !strings.HasSuffix(m.Writer, "-"+session) {
					c.violated("NamedObjectsExist", "%s, written by %s, names %s", key, m.Writer, o.Key)
				}
			}
			if before := s.manifests[number-1]; before != nil {
				for topic, next := range before.Next {
					if m.Next[topic] < next {
						c.violated("OffsetsNeverDecrease", "%s has offset %d of topic %s, the manifest before it %d",
							key, m.Next[topic], topic, next)
					}
				}
			}
			s.manifests[number] = m
			s.head = max(s.head, number)
			return m
		},
		removed: func(object) { c.violated("ManifestsNeverChange", "%s was removed", key) },
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
