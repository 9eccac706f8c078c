package group

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/segmentio/kafka-go"
)

func partitions(rng *rand.Rand, n int, topics ...string) []kafka.Partition {
	var ps []kafka.Partition
	for _, t := range topics {
		for p := range n {
			ps = append(ps, kafka.Partition{Topic: t, ID: p})
		}
	}
	rng.Shuffle(len(ps), func(i, j int) { ps[i], ps[j] = ps[j], ps[i] })
	return ps
}

// members have the shards of the last assignment.
func groupMembers(t *testing.T, ids []string, had map[string][]int, generation int32) []kafka.GroupMember {
	t.Helper()
	var ms []kafka.GroupMember
	for _, id := range ids {
		b := &balancer{}
		if shards, ok := had[id]; ok {
			b.assigned(generation, shards)
		}
		data, err := b.UserData()
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, kafka.GroupMember{ID: id, UserData: data})
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
			rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			got := (&balancer{}).AssignGroups(groupMembers(t, ids, had, generation),
				partitions(rng, n, "nodes", "edges", "mirror"))

			now := map[string][]int{}
			owner := map[int]string{}
			moved := 0
			for _, id := range ids {
				now[id] = got[id]["nodes"]
				if !slices.IsSorted(now[id]) {
					t.Fatalf("seed %d: %v is not sorted", seed, now[id])
				}
				for _, topic := range []string{"edges", "mirror"} {
					if !slices.Equal(got[id][topic], now[id]) {
						t.Fatalf("seed %d: %s has %v of nodes, %v of %s", seed, id, now[id], got[id][topic], topic)
					}
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
	var ms []kafka.GroupMember
	for id, b := range map[string]*balancer{"a": stale, "b": current} {
		data, err := b.UserData()
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, kafka.GroupMember{ID: id, UserData: data})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	got := (&balancer{}).AssignGroups(ms, partitions(rng, 4, "nodes"))
	if !slices.Equal(got["b"]["nodes"], []int{0, 1}) {
		t.Errorf("b, which had 0 and 1 last, got %v", got["b"]["nodes"])
	}
}

func TestBalancerLeavesOutPartitionsThatATopicLacks(t *testing.T) {
	ps := []kafka.Partition{{Topic: "nodes", ID: 1}, {Topic: "nodes", ID: 0}, {Topic: "edges", ID: 0}}
	got := (&balancer{}).AssignGroups([]kafka.GroupMember{{ID: "a"}}, ps)
	if !slices.Equal(got["a"]["nodes"], []int{0}) || !slices.Equal(got["a"]["edges"], []int{0}) {
		t.Errorf("got %v, want shard 0 alone", got)
	}
}

func FuzzUserData(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 1, 2})
	f.Add([]byte{0, 0, 0, 1, 0x80})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		got := (&balancer{}).AssignGroups([]kafka.GroupMember{{ID: "a", UserData: data}, {ID: "b", UserData: data}},
			[]kafka.Partition{{Topic: "nodes", ID: 0}, {Topic: "nodes", ID: 1}})
		if len(got["a"]["nodes"]) != 1 || len(got["b"]["nodes"]) != 1 {
			t.Errorf("got %v", got)
		}
	})
}

// Of the shards of a member that has gone, each goes to a member that has a copy of it, as far as an even spread
// allows. Members of releases that know no copies read the rest alike.
func TestBalancerPrefersMembersWithACopy(t *testing.T) {
	joined := func(id string, shards, warm []int) kafka.GroupMember {
		b := &balancer{warm: func() []int { return warm }}
		b.assigned(7, shards)
		data, err := b.UserData()
		if err != nil {
			t.Fatal(err)
		}
		return kafka.GroupMember{ID: id, UserData: data}
	}
	all := partitions(rand.New(rand.NewPCG(1, 1)), 6, "nodes", "edges")
	// A third member had 4 and 5.
	got := (&balancer{}).AssignGroups([]kafka.GroupMember{joined("a", []int{0, 1}, []int{5, 2}),
		joined("b", []int{2, 3}, []int{4, 0})}, all)
	if a, b := got["a"]["nodes"], got["b"]["nodes"]; !slices.Equal(a, []int{0, 1, 5}) || !slices.Equal(b, []int{2, 3, 4}) {
		t.Errorf("a has %v, b has %v", a, b)
	}
	// Both were copied by one member.
	got = (&balancer{}).AssignGroups([]kafka.GroupMember{joined("a", []int{0, 1}, []int{4, 5}),
		joined("b", []int{2, 3}, nil)}, all)
	if a, b := got["a"]["nodes"], got["b"]["nodes"]; !slices.Equal(a, []int{0, 1, 4}) || !slices.Equal(b, []int{2, 3, 5}) {
		t.Errorf("a has %v, b has %v", a, b)
	}
	generation, shards, warm := parseUserData(joined("a", []int{0, 300}, []int{5, 1000}).UserData)
	if generation != 7 || !slices.Equal(shards, []int{0, 300}) || !slices.Equal(warm, []int{5, 1000}) {
		t.Errorf("generation %d, shards %v, copies %v", generation, shards, warm)
	}
}
