package xrt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/internal/graphtest"
	"giantstream/train/objectives/together"
	"giantstream/train/objectives/trainer"
)

// crew is a together.Group of goroutines. Member 0 does what a member that is lost would have done.
type crew struct {
	members int
	lost    func(member, exchange int) bool
	done    []chan []byte // of each member: its outcome, nil for one that is lost
	all     []chan agreed
}

// agreed is the outcome of an exchange, and who takes part in the next.
type agreed struct {
	parts []together.Part
	alive []int
}

var errLost = errors.New("this member is lost")

// run has each member train, and returns the outcome of member 0.
func (c *crew) run(t *testing.T, train func(member int, g together.Group) ([]byte, error)) []byte {
	t.Helper()
	for range c.members {
		c.done, c.all = append(c.done, make(chan []byte, 1)), append(c.all, make(chan agreed, 1))
	}
	var group sync.WaitGroup
	out := make([][]byte, c.members)
	for m := range c.members {
		group.Go(func() {
			var err error
			everybody := make([]int, c.members)
			for k := range everybody {
				everybody[k] = k
			}
			if out[m], err = train(m, &member{c, m, 0, everybody}); err != nil && !errors.Is(err, errLost) {
				t.Error(err)
			}
			for _, all := range c.all {
				if m == 0 {
					close(all)
				}
			}
		})
	}
	group.Wait()
	return out[0]
}

type member struct {
	*crew
	number, exchange int
	alive            []int
}

func (m *member) Exchange(work func(from, to int) ([]byte, error)) ([]together.Part, error) {
	m.exchange++
	n := len(m.alive)
	at := slices.Index(m.alive, m.number)
	from, to := at*together.Slices/n, (at+1)*together.Slices/n
	if m.number != 0 && m.lost(m.number, m.exchange) {
		m.done[m.number] <- nil
		return nil, errLost
	}
	own, err := work(from, to)
	if m.number != 0 {
		if m.done[m.number] <- own; err != nil {
			return nil, err
		}
		a, ok := <-m.all[m.number]
		if m.alive = a.alive; !ok {
			return nil, errLost
		}
		return a.parts, nil
	}
	if err != nil {
		return nil, err
	}
	a := agreed{[]together.Part{{From: from, To: to, Data: own}}, []int{0}}
	for k, other := range m.alive[1:] {
		from, to := (k+1)*together.Slices/n, (k+2)*together.Slices/n
		data := <-m.done[other]
		if data != nil {
			a.alive = append(a.alive, other)
		} else if data, err = work(from, to); err != nil {
			return nil, err
		}
		a.parts = append(a.parts, together.Part{From: from, To: to, Data: data})
	}
	for _, other := range a.alive[1:] {
		m.all[other] <- a
	}
	m.alive = a.alive
	return a.parts, nil
}

// Any number of processes, and those of which some are lost at any time, train a network to the same bits.
func TestTogetherTheWeightsAreThoseOfOne(t *testing.T) {
	for name, trainAs := range map[string]func(g together.Group) ([]byte, error){
		"transformer": togetherBERT(t), "n-grams": togetherBag(t),
	} {
		alone, err := trainAs(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, members := range []int{1, 2, 3, 4, 7} {
			for seed := range uint64(3) {
				r := rand.New(rand.NewPCG(seed, uint64(members)))
				when := map[int]int{}
				for m := 1; m < members && seed > 0; m++ {
					when[m] = 1 + r.IntN(60)
				}
				c := &crew{members: members, lost: func(m, exchange int) bool { return when[m] == exchange }}
				got := c.run(t, func(_ int, g together.Group) ([]byte, error) { return trainAs(g) })
				if !bytes.Equal(got, alone) {
					t.Errorf("%s: %d processes, seed %d: other weights", name, members, seed)
				}
			}
		}
	}
}

func state(net train.Network) ([]byte, error) {
	var b bytes.Buffer
	err := net.WriteState(&b)
	return b.Bytes(), err
}

func togetherBERT(t *testing.T) func(g together.Group) ([]byte, error) {
	words := []string{"steel", "screw", "box", "paper", "print", "stain", "fold", "sort"}
	set := Set{Neighbours: &sparse.Matrix{Cols: 48, Start: []int64{0}}, Keys: graphtest.Keys(48), Tree: eight{}, Stream: 1}
	var texts []string
	for i := range 48 {
		texts = append(texts, fmt.Sprintf("%s the %s", words[i%8], words[i%5]))
		set.Neighbours.Append(sparse.Vector{Index: []int32{int32(7 - i%8)}, Value: []float32{1}})
		set.Instances = append(set.Instances, int32(i))
	}
	return func(g together.Group) ([]byte, error) {
		net := tinyBERT(t, texts, bert.TuneOptions{Pooling: compute.Mean, MaxTokens: 16, Dropout: 0.1, DropTokens: 0.1})
		_, err := Train(t.Context(), together.New(net, g), set, Options{Steps: []int64{12}, Batch: 20, Rate: 3e-3,
			HeadRate: 0.02, Links: 0.5}, trainer.Hooks{}, nil)
		if err != nil {
			return nil, err
		}
		return state(net)
	}
}

func togetherBag(t *testing.T) func(g together.Group) ([]byte, error) {
	b, pairs := bagOf(t, graphtest.Topics(240, 4, 6, 1))
	b.Epochs, b.Batch, b.Links = 3, 32, 0.5
	return func(g together.Group) ([]byte, error) {
		own := b
		own.Share = func(net train.Sliced) train.Network { return together.New(net, g) }
		hooks := trainer.Hooks{}
		if pairs != nil {
			hooks.Validate = pairs.Validate(b.Dim)
		}
		model, _, _, err := own.Train(t.Context(), hooks, nil)
		if err != nil {
			return nil, err
		}
		return binary.Append(nil, binary.LittleEndian, model.Vectors())
	}
}

// groupOfOne cuts batches all the same.
type groupOfOne struct{}

func (groupOfOne) Exchange(work func(from, to int) ([]byte, error)) ([]together.Part, error) {
	all, err := work(0, together.Slices)
	return []together.Part{{From: 0, To: together.Slices, Data: all}}, err
}

// Slices change nothing of the training of a table of n-grams: its gradients are added in the order of the instances.
func TestATableInSlicesIsTheSame(t *testing.T) {
	b, pairs := bagOf(t, graphtest.Topics(240, 4, 6, 1))
	b.Epochs, b.Links = 3, 0.5
	whole := fitBag(t, b, pairs, trainer.Hooks{})
	b.Share = func(net train.Sliced) train.Network { return together.New(net, groupOfOne{}) }
	if sliced := fitBag(t, b, pairs, trainer.Hooks{}); !slices.Equal(whole.model.Vectors(), sliced.model.Vectors()) {
		t.Error("other vectors")
	}
}
