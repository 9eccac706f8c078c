package trace

// cursor is published.json or canary.json (docs/format/manifest.md, "Beside it"), as far as the rules need it.
type cursor struct {
	Generation int64 `json:"generation"`
	Seq        int64 `json:"seq"`
}

// cursorRule: the cursor does not pass the head. It moves back only to where it has been, or to the
// start.
func (c *Checker) cursorRule(p int, key string) rule {
	s := c.shard(p)
	if s.cursors[key] == nil {
		s.cursors[key] = map[cursor]bool{}
	}
	had := s.cursors[key]
	return rule{written: func(data []byte, old object, existed bool) any {
		var now cursor
		if !c.parse(key, data, &now) {
			return nil
		}
		if now.Seq > s.head {
			c.violated("CursorIsCovered", "%s says that manifest %d is published, the head is %d", key, now.Seq, s.head)
		}
		before, _ := old.doc.(cursor)
		back := existed && now.Generation <= before.Generation && now != before &&
			(now.Generation < before.Generation || now.Seq < before.Seq)
		if back && !had[now] && now.Seq > 0 {
			c.violated("CursorReturns", "%s went back from %+v to %+v, where it has never been", key, before, now)
		}
		had[now] = true
		return now
	}}
}
