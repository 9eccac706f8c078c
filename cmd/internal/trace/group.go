package trace

import "strings"

// group is docs/format/manifest.md, "Group manifests", as far as the rules need it.
type group struct {
	Session string `json:"session"`
	Number  int64  `json:"number"`
	Sealed  bool   `json:"sealed"`
	Shards  []struct {
		manifest
		Shard int `json:"shard"`
	} `json:"shards"`
}

// sharedBy is a manifest that names a row object of a session.
type sharedBy struct {
	shard int
	seq   int64
}

// groupRule: a group manifest is created once, after the one before it. Each of its shards gets its next number, and
// the objects that it names are there. A shard is in it because it was in the one before, or because the shard's
// newest delegation says so: a shard that was left out does not come back by itself. Nothing follows a seal. A group
// manifest may go once every number in it lies behind the boundary of its shard; the seal that ends a session stays.
func (c *Checker) groupRule(session string, number int64, key string) rule {
	return rule{
		written: func(data []byte, _ object, existed bool) any {
			c.fixed("ManifestsNeverChange", key, existed)
			g := &group{}
			if !c.parse(key, data, g) {
				return nil
			}
			newest := c.sessions[session]
			if number <= newest.number {
				return g // a late one of a number that was removed; nobody believes it
			}
			if number != newest.number+1 || newest.sealed {
				c.violated("NoGap", "%s was created after number %d, sealed: %t", key, newest.number, newest.sealed)
			}
			next := sessionState{number, g.Sealed, map[int]int64{}}
			c.sessions[session] = next
			for i := range g.Shards {
				m := &g.Shards[i]
				d := c.shard(m.Shard).manifests[m.Seq-1]
				delegated := d != nil && d.Session != nil && *d.Session == delegation{session, number}
				if before, ok := newest.shards[m.Shard]; !delegated && (!ok || before != m.Seq-1) {
					c.violated("OneLine", "%s has manifest %d of shard %d, which is not delegated to it", key, m.Seq,
						m.Shard)
				}
				next.shards[m.Shard] = m.Seq
				for _, o := range m.Objects {
					if n, _ := groupRowKey(o.Key); n != number || !strings.HasPrefix(o.Key, "sessions/"+session+"/") {
						c.violated("NamedObjectsExist", "%s names %s", key, o.Key)
					}
					c.shared[o.Key] = append(c.shared[o.Key], sharedBy{m.Shard, m.Seq})
				}
				c.committed(c.shard(m.Shard), &m.manifest, m.Seq, key, false)
			}
			return g
		},
		removed: func(old object) {
			g, _ := old.doc.(*group)
			if g == nil {
				return
			}
			if newest := c.sessions[session]; g.Sealed && newest.sealed && newest.number == number {
				c.violated("ManifestsNeverChange", "%s was removed, which ends the session", key)
			}
			for i := range g.Shards {
				m := &g.Shards[i]
				if at := c.shard(m.Shard).boundary; m.Seq > at {
					c.violated("ManifestsNeverChange", "%s was removed, the boundary of shard %d is at %d", key,
						m.Shard, at)
				}
			}
		},
	}
}

// groupRowsRule: a row object of a session never changes. It may go once it is merged in every shard that has rows in
// it, or if its group manifest, or the seal in its place, does not name it.
func (c *Checker) groupRowsRule(session, key string) rule {
	return rule{
		written: func(_ []byte, _ object, existed bool) any {
			c.fixed("NamedObjectsExist", key, existed)
			return nil
		},
		removed: func(object) {
			if number, _ := groupRowKey(key); number > c.sessions[session].number {
				c.violated("OnlyOrphansGo", "%s was removed, and session %s is at number %d", key, session,
					c.sessions[session].number)
			}
			for _, by := range c.shared[key] {
				if !c.superseded(by.shard, 1, by.seq) {
					c.violated("NamedObjectsExist", "%s was removed, which manifest %d of shard %d names", key, by.seq,
						by.shard)
				}
			}
		},
	}
}

// groupRowKey takes a key apart: sessions/<session>/rows/<number>-<n>.parquet.
func groupRowKey(key string) (number int64, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[2] != "rows" {
		return 0, false
	}
	digits, _, _ := strings.Cut(parts[3], "-")
	return atoi(digits), true
}

// sessionState is the newest entry of a session's log.
type sessionState struct {
	number int64
	sealed bool
	shards map[int]int64 // their numbers in the newest group manifest
}

// sessionRule finds the rule of an object of a session.
func (c *Checker) sessionRule(key string) rule {
	parts := strings.Split(key, "/")
	if _, ok := groupRowKey(key); ok {
		return c.groupRowsRule(parts[1], key)
	}
	if len(parts) != 3 {
		return rule{}
	}
	return c.groupRule(parts[1], atoi(strings.TrimSuffix(parts[2], ".json")), key)
}
