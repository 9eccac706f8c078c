package group

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
)

// ProtocolName identifies the balancer to the group: all members must offer it, or one that they
// agreed on in Options.Protocol.
const ProtocolName = "giantstream-shards-2"

// balancer assigns shards to the members of a group (see the package comment). It remembers the
// shards of this member and reports them to the leader when the member joins again.
type balancer struct {
	protocol string // "" means ProtocolName

	// warm, if not nil, returns the shards that this member has a copy of.
	warm func() []int

	mu         sync.Mutex
	generation int32
	shards     []int
}

// endOfShards ends the list of shards in the user data where another one follows. Members of older releases read
// no further, since no shard has this number.
const endOfShards = 1 << 40

// assigned notes the shards of this member in a generation.
func (b *balancer) assigned(generation int32, shards []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.generation, b.shards = generation, slices.Clone(shards)
}

// name is that of the protocol.
func (b *balancer) name() string { return cmp.Or(b.protocol, ProtocolName) }

// userData is what this member tells the leader: the generation (4 bytes, big endian) and the shards
// (uvarints) that it had last; then endOfShards and the shards that it has a copy of, if any.
func (b *balancer) userData() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	data := binary.BigEndian.AppendUint32(nil, uint32(b.generation))
	for _, s := range b.shards {
		data = binary.AppendUvarint(data, uint64(s))
	}
	if b.warm == nil {
		return data
	}
	for i, s := range b.warm() {
		if i == 0 {
			data = binary.AppendUvarint(data, endOfShards)
		}
		data = binary.AppendUvarint(data, uint64(s))
	}
	return data
}

func parseUserData(data []byte) (generation int32, shards, warm []int) {
	if len(data) < 4 {
		return 0, nil, nil
	}
	generation = int32(binary.BigEndian.Uint32(data))
	list := &shards
	for data = data[4:]; len(data) > 0; {
		s, n := binary.Uvarint(data)
		switch {
		case n > 0 && s == endOfShards && list == &shards:
			list = &warm
		case n <= 0 || s > 1<<31:
			return generation, shards, warm
		default:
			*list = append(*list, int(s))
		}
		data = data[n:]
	}
	return generation, shards, warm
}

// member is a group member, the shards it keeps, and those that it has a copy of.
type member struct {
	id         string
	generation int32
	shards     []int
	warm       []int
}

// shardsOf returns the partition numbers that every topic has, ascending.
func shardsOf(partitions map[string]int) (shards []int) {
	if len(partitions) == 0 {
		return nil
	}
	for s := range slices.Min(slices.Collect(maps.Values(partitions))) {
		shards = append(shards, s)
	}
	return shards
}

// owners lists the members with the shards that they had, by their user data. If two members claim the same shard, the
// one of the later generation has it; among equal generations, the one with the smaller id.
func owners(userData map[string][]byte) []member {
	ms := make([]member, 0, len(userData))
	for id, data := range userData {
		m := member{id: id}
		m.generation, m.shards, m.warm = parseUserData(data)
		ms = append(ms, m)
	}
	slices.SortFunc(ms, func(a, b member) int {
		return cmp.Or(cmp.Compare(b.generation, a.generation), cmp.Compare(a.id, b.id))
	})
	taken := map[int]bool{}
	for i := range ms {
		slices.Sort(ms[i].shards)
		ms[i].shards = slices.DeleteFunc(ms[i].shards, func(s int) bool {
			was := taken[s]
			taken[s] = true
			return was
		})
	}
	return ms
}

// spread gives each member its share, and the larger shares to the members that have most, among equals to those
// that have most copies of shards that nobody has. It takes
// away what exceeds a share and assigns what is free: first to members with a copy. No even spread moves fewer
// shards.
func spread(ms []member, shards []int) []member {
	if len(ms) == 0 {
		return nil
	}
	exists := map[int]bool{}
	for _, s := range shards {
		exists[s] = true
	}
	nobodys := maps.Clone(exists)
	for i := range ms {
		ms[i].shards = slices.DeleteFunc(ms[i].shards, func(s int) bool { return !exists[s] })
		for _, s := range ms[i].shards {
			delete(nobodys, s)
		}
	}
	copies := func(m member) (n int) {
		for _, s := range m.warm {
			if nobodys[s] {
				n++
			}
		}
		return n
	}
	slices.SortFunc(ms, func(a, b member) int {
		return cmp.Or(cmp.Compare(len(b.shards), len(a.shards)), cmp.Compare(copies(b), copies(a)),
			cmp.Compare(a.id, b.id))
	})
	share := func(i int) int {
		n := len(shards) / len(ms)
		if i < len(shards)%len(ms) {
			n++
		}
		return n
	}
	free := exists
	for i := range ms {
		ms[i].shards = ms[i].shards[:min(len(ms[i].shards), share(i))]
		for _, s := range ms[i].shards {
			delete(free, s)
		}
	}
	for i := range ms {
		for _, s := range ms[i].warm {
			if free[s] && len(ms[i].shards) < share(i) {
				ms[i].shards = append(ms[i].shards, s)
				delete(free, s)
			}
		}
	}
	rest := slices.Sorted(maps.Keys(free))
	for i := range ms {
		n := share(i) - len(ms[i].shards)
		ms[i].shards = append(ms[i].shards, rest[:n]...)
		slices.Sort(ms[i].shards)
		rest = rest[n:]
	}
	return ms
}
