package shard

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The graph is a function of the set of mutations: any order of records, any repetition, any
// batches, windows and shards give the rows of the model.
func TestGraphIsAFunctionOfTheSetOfMutations(t *testing.T) {
	for seed := range uint64(roundsOf(40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			source := newBroker(1)
			fill(source, rng, 20+rng.IntN(120), 3+rng.IntN(6))
			want := model(source.everything(), true)
			for _, shards := range []int{1, 3} {
				b := newBroker(shards)
				shuffle(b, source, rng)
				p := newPipeline(t, b, seed)
				p.window.Changes = 1 + rng.IntN(20)
				p.batch = 1 + rng.IntN(20)
				p.drain(0)
				sameRows(t, p.newest(), want)
				p.checkLog()
				if t.Failed() {
					t.Fatalf("seed %d, %d shards", seed, shards)
				}
			}
		})
	}
}

// shuffle deals the records of one broker to another in random order, some of them twice, with the
// versions they have.
func shuffle(to, from *broker, rng *rand.Rand) {
	for _, log := range from.logs {
		for _, topic := range statingTopics {
			deal := append([]record{}, log[topic]...)
			for range len(deal) / 4 {
				deal = append(deal, deal[rng.IntN(len(deal))])
			}
			rng.Shuffle(len(deal), func(i, j int) { deal[i], deal[j] = deal[j], deal[i] })
			for _, r := range deal {
				target := to.logs[to.shardOf(r[0].ID)]
				target[topic] = append(target[topic], r)
			}
		}
	}
}
