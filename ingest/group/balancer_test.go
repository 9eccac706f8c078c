package group

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// share spreads the shards over members, as the leader does, by their user data.
func share(members map[string][]byte, shards int) map[string][]int {
	got := map[string][]int{}
	for _, m := range spread(owners(members), shardsOf(map[string]int{"nodes": shards, "edges": shards})) {
		got[m.id] = m.shards
	}
	return got
}

// groupMembers have the shards of the last assignment.
func groupMembers(ids []string, had map[string][]int, generation int32) map[string][]byte {
	ms := map[string][]byte{}
	for _, id := range ids {
		b := &balancer{}
		if shards, ok := had[id]; ok {
			b.assigned(generation, shards)
		}
		ms[id] = b.userData()
	}
	return ms
}

// least is the number of shards that any even spread must move: what members have over their
// shares, with the larger shares where most is kept.
func least(ids []string, had map[string][]int, n int) int {
	counts := make([]int, len(ids))
	for i, id := range ids {
		counts[i] = len(had[id])
	}
	slices.SortFunc(counts, func(a, b int) int { return b - a })
	kept := 0
	for i, c := range counts {
		share := n / len(ids)
		if i < n%len(ids) {
			share++
		}
		kept += min(c, share)
	}
	return n - kept
}

func TestBalancerIsEvenCoPartitionedAndSticky(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(40)
		had := map[string][]int{}
		for generation := range int32(8) {
			var ids []string
			for m := range 6 {
				if rng.IntN(3) > 0 {
					ids = append(ids, fmt.Sprint("worker-", m))
				}
			}
			if len(ids) == 0 {
				continue
			}
			maps.DeleteFunc(had, func(id string, _ []int) bool { return !slices.Contains(ids, id) })
			got := share(groupMembers(ids, had, generation), n)

			now := map[string][]int{}
			owner := map[int]string{}
			moved := 0
			for _, id := range ids {
				now[id] = got[id]
				if !slices.IsSorted(now[id]) {
					t.Fatalf("seed %d: %v is not sorted", seed, now[id])
				}
				if l := len(now[id]); l < n/len(ids) || l > (n+len(ids)-1)/len(ids) {
					t.Fatalf("seed %d: %d of %d shards on one of %d members", seed, l, n, len(ids))
				}
				for _, s := range now[id] {
					if owner[s] != "" {
						t.Fatalf("seed %d: shard %d on %s and %s", seed, s, owner[s], id)
					}
					owner[s] = id
					if !slices.Contains(had[id], s) {
						moved++
					}
				}
			}
			if len(owner) != n {
				t.Fatalf("seed %d: %d of %d shards assigned", seed, len(owner), n)
			}
			if want := least(ids, had, n); moved != want {
				t.Fatalf("seed %d: %d shards moved, %d would do", seed, moved, want)
			}
			had = now
		}
	}
}

func TestBalancerBelievesTheLaterGeneration(t *testing.T) {
	stale, current := &balancer{}, &balancer{}
	stale.assigned(3, []int{0, 1})
	current.assigned(4, []int{0, 1})
	got := share(map[string][]byte{"a": stale.userData(), "b": current.userData()}, 4)
	if !slices.Equal(got["b"], []int{0, 1}) {
		t.Errorf("b, which had 0 and 1 last, got %v", got["b"])
	}
}

func TestShardsArePartitionsThatEveryTopicHas(t *testing.T) {
	if got := shardsOf(map[string]int{"nodes": 2, "edges": 1}); !slices.Equal(got, []int{0}) {
		t.Errorf("got %v, want shard 0 alone", got)
	}
}

func FuzzUserData(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 1, 2})
	f.Add([]byte{0, 0, 0, 1, 0x80})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		got := share(map[string][]byte{"a": data, "b": data}, 2)
		if len(got["a"]) != 1 || len(got["b"]) != 1 {
			t.Errorf("got %v", got)
		}
	})
}

// Of the shards of a member that has gone, each goes to a member that has a copy of it, as far as an even spread
// allows. Members of releases that know no copies read the rest alike.
func TestBalancerPrefersMembersWithACopy(t *testing.T) {
	joined := func(shards, warm []int) []byte {
		b := &balancer{warm: func() []int { return warm }}
		b.assigned(7, shards)
		return b.userData()
	}
	// A third member had 4 and 5.
	got := share(map[string][]byte{"a": joined([]int{0, 1}, []int{5, 2}), "b": joined([]int{2, 3}, []int{4, 0})}, 6)
	if a, b := got["a"], got["b"]; !slices.Equal(a, []int{0, 1, 5}) || !slices.Equal(b, []int{2, 3, 4}) {
		t.Errorf("a has %v, b has %v", a, b)
	}
	// Both were copied by one member.
	got = share(map[string][]byte{"a": joined([]int{0, 1}, []int{4, 5}), "b": joined([]int{2, 3}, nil)}, 6)
	if a, b := got["a"], got["b"]; !slices.Equal(a, []int{0, 1, 4}) || !slices.Equal(b, []int{2, 3, 5}) {
		t.Errorf("a has %v, b has %v", a, b)
	}
	generation, shards, warm := parseUserData(joined([]int{0, 300}, []int{5, 1000}))
	if generation != 7 || !slices.Equal(shards, []int{0, 300}) || !slices.Equal(warm, []int{5, 1000}) {
		t.Errorf("generation %d, shards %v, copies %v", generation, shards, warm)
	}
}
