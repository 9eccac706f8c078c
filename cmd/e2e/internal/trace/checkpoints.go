package trace

import "strings"

// checkpoint is docs/format/state.md, "Checkpoints", as far as the rules need it.
type checkpoint struct {
	Seq   int64   `json:"seq"`
	Files []named `json:"files"`
}

// newestTwo returns the numbers of the newest two checkpoints, 0 for one that does not exist.
func (s *shardState) newestTwo() (newest, second int64) {
	for number := range s.checkpoints {
		switch {
		case number > newest:
			newest, second = number, newest
		case number > second:
			second = number
		}
	}
	return newest, second
}

// checkpointRule: documents are created once under consecutive numbers, stand at ascending
// manifests that exist, and the newest two are kept whole. A late document, of a number that was
// removed long ago, is older than these two and does no harm.
func (c *Checker) checkpointRule(p int, number int64, key string) rule {
	s := c.shard(p)
	return rule{
		written: func(data []byte, _ object, existed bool) any {
			c.fixed("NextNumber", key, existed)
			doc := &checkpoint{}
			if !c.parse(key, data, doc) {
				return nil
			}
			newest, second := s.newestTwo()
			if number > newest+1 {
				c.violated("NextNumber", "%s was created when the newest checkpoint was %d", key, newest)
			}
			if s.manifests[doc.Seq] == nil {
				c.violated("SeqAscends", "%s stands at manifest %d, which does not exist", key, doc.Seq)
			}
			s.checkpoints[number] = doc
			if number <= newest {
				return doc
			}
			for _, before := range []*checkpoint{s.checkpoints[newest], s.checkpoints[second]} {
				if before != nil && before.Seq >= doc.Seq {
					c.violated("SeqAscends", "%s stands at manifest %d, one before it at %d", key, doc.Seq, before.Seq)
				}
			}
			for _, f := range doc.Files {
				if !c.exists(f.Key) {
					c.violated("KeptAreWhole", "%s names %s, which does not exist", key, f.Key)
				}
			}
			return doc
		},
		removed: func(object) {
			delete(s.checkpoints, number)
			if _, second := s.newestTwo(); number > second {
				c.violated("KeptAreWhole", "%s was removed, and is one of the newest two", key)
			}
		},
	}
}

// stateFileRule: a file never changes. It may go if its number is below that of the newest
// checkpoint and neither of the newest two names it.
func (c *Checker) stateFileRule(p int, number int64, key string) rule {
	s := c.shard(p)
	return rule{
		written: func(_ []byte, _ object, existed bool) any {
			c.fixed("KeptAreWhole", key, existed)
			return nil
		},
		removed: func(object) {
			newest, second := s.newestTwo()
			if number >= newest {
				c.violated("KeptAreWhole", "%s was removed; the next checkpoint may name it", key)
			}
			for _, kept := range []*checkpoint{s.checkpoints[newest], s.checkpoints[second]} {
				if kept != nil && names(kept.Files, key) {
					c.violated("KeptAreWhole", "%s was removed, which one of the newest two checkpoints names", key)
				}
			}
		},
	}
}

// rowKey returns the window and the session in the key of a row object, shards/<p>/rows/<window>-<session>-<n>.parquet.
func rowKey(key string) (window int64, session string) {
	parts := strings.Split(key[strings.LastIndex(key, "/")+1:], "-")
	if len(parts) != 3 {
		return 0, ""
	}
	return atoi(parts[0]), parts[1]
}
