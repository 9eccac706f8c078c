package trace

import "strings"

// record is docs/format/lease.md, as far as the rules need it.
type record struct {
	Session string `json:"session"`
}

// leaseRule: the object of the highest number stays, and only its own session replaces it.
func (c *Checker) leaseRule(key string) rule {
	at := strings.LastIndex(key, "/")
	name, number := key[:at], atoi(strings.TrimSuffix(key[at+1:], ".json"))
	return rule{
		written: func(data []byte, old object, existed bool) any {
			now := &record{}
			if !c.parse(key, data, now) {
				return nil
			}
			if before, ok := old.doc.(*record); existed && ok && before.Session != now.Session {
				c.violated("OwnRecord", "%s of session %s was replaced by session %s", key, before.Session, now.Session)
			}
			c.leases[name] = max(c.leases[name], number)
			return now
		},
		removed: func(object) {
			if number >= c.leases[name] {
				c.violated("HighestStays", "%s was removed, and there is no higher number", key)
			}
		},
	}
}
