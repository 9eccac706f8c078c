package sim

import (
	"context"
	"fmt"

	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// groupManifest checks the manifests of several shards.
func (v *watch) groupManifest(key string, data []byte) {
	g, err := commitlog.DecodeGroup(data)
	if err != nil {
		v.w.fail("%s does not read: %v", key, err)
		return
	}
	v.inLine(key, g)
	for _, m := range g.Parts() {
		v.manifest(key, m)
		for _, o := range m.Objects {
			v.shared[o.Key] = append(v.shared[o.Key], sharedBy{m.Shard, m.Seq})
		}
	}
	if g.Sealed {
		v.sealed[g.Session] = max(v.sealed[g.Session], g.Number)
	}
	switch {
	case g.Sealed:
		v.seals++
	case len(g.Parts()) > 1:
		v.groups++
	}
}

// inLine checks that each shard of a group manifest was in the one before, or is delegated from this one on.
func (v *watch) inLine(key string, g *commitlog.GroupManifest) {
	before, now := v.lines[g.Session], map[int]int64{}
	for _, m := range g.Parts() {
		if v.heads[m.Shard] != nil && m.Seq <= v.heads[m.Shard].Seq {
			return // a retry, or a late one of a number that was removed
		}
		if d := v.delegated[m.Shard][m.Seq-1]; before[m.Shard] != m.Seq-1 && d != (commitlog.Delegation{
			Session: g.Session, From: g.Number}) {
			v.w.fail("%s has manifest %d of shard %d, which is not delegated to it", key, m.Seq, m.Shard)
		}
		now[m.Shard] = m.Seq
	}
	for shard := range before {
		if now[shard] == 0 && !g.Sealed {
			v.releases++
		}
	}
	v.lines[g.Session] = now
}

// groupDeleted checks that every number of a group manifest lies behind the boundary of its shard, and that it is not
// the seal that ends a session.
func (v *watch) groupDeleted(a *actor, key string) {
	data, err := sink.ReadAll(context.Background(), &v.w.store, key)
	if err != nil {
		return // it is gone
	}
	g, err := commitlog.DecodeGroup(data)
	if err != nil {
		v.w.fail("%s: %v", key, err)
		return
	}
	if g.Sealed && g.Number >= v.sealed[g.Session] {
		v.w.fail("the seal %s was removed by %s", key, a.name)
	}
	for _, m := range g.Parts() {
		if m.Seq > v.boundaries[m.Shard] {
			v.w.fail("%s was removed by %s, the boundary of shard %d is at %d, its manifest is %d", key, a.name,
				m.Shard,
				v.boundaries[m.Shard], m.Seq)
		}
	}
}

// groupRowsDeleted checks that every manifest that names a shared row object is merged.
func (v *watch) groupRowsDeleted(a *actor, key string) {
	for _, by := range v.shared[key] {
		from := (by.seq-1)/64*64 + 1
		if block := fmt.Sprintf("shards/%d/compacted/1-%020d.json", by.shard, from); !v.exists(block) {
			v.w.fail("%s was removed by %s; manifest %d of shard %d names it, and it is not merged", key, a.name,
				by.seq, by.shard)
		}
	}
}
