package commitlog

import (
	"fmt"
	"slices"
	"time"

	"giantstream/stream/mutation"
)

// Input says which topic a shard reads under a name, and how the offsets of the commit log relate
// to those of the brokers. Only the topic that a manifest names may continue it: another topic of
// the same name has other records at the same offsets.
type Input struct {
	// ID is the id that the brokers gave the topic, "" where they give none.
	ID string `json:"id,omitempty"`
	// Partitions is how many the topic has. It equals the number of shards.
	Partitions int `json:"partitions"`
	// First is the offset at which the shard began to read. Records from there on were consumed.
	First int64 `json:"first"`
	// Base is what the offsets of the commit log are above those of the brokers. It is 0 until a
	// person accepts that the topic was created again: the offsets of the commit log continue, and
	// so every record of the new topic is later than every record of the old one.
	Base int64 `json:"base,omitempty"`
	// Last is the newest record that was consumed, nil before the first. If the topic has another
	// record at its offset, it is another topic, or it has forgotten records that it had. Where the
	// record is gone, nothing can be told.
	Last *mutation.Record `json:"last,omitempty"`
}

// Lost is a range of offsets, as the commit log counts them, whose records are gone: they were
// deleted from the topic before they were read, or before a lost state could be built from them
// again.
type Lost struct {
	Topic string `json:"topic"`
	From  int64  `json:"from"` // inclusive
	To    int64  `json:"to"`   // exclusive
	// Offsets is how many are lost in the range. It is less than To-From where AddLost has joined
	// ranges.
	Offsets int64     `json:"offsets"`
	Noticed time.Time `json:"noticed"`
}

// String names the range as people write it.
func (l Lost) String() string {
	if l.Offsets < l.To-l.From {
		return fmt.Sprintf("%s: %d of the offsets %d to %d", l.Topic, l.Offsets, l.From, l.To-1)
	}
	return fmt.Sprintf("%s: offsets %d to %d", l.Topic, l.From, l.To-1)
}

// maxLost bounds the ranges that a manifest lists.
const maxLost = 100

// AddLost adds a range to a list. A range that the list has already changes nothing. Of a long list,
// the two oldest ranges of a topic are joined.
func AddLost(list []Lost, l Lost) []Lost {
	for i := range list {
		if have := &list[i]; have.Topic == l.Topic && have.From <= l.From && l.To <= have.To {
			return list
		}
	}
	out := append(slices.Clone(list), l)
	if len(out) <= maxLost {
		return out
	}
	first := map[string]int{}
	for i, one := range out {
		j, ok := first[one.Topic]
		if !ok {
			first[one.Topic] = i
			continue
		}
		joined := Lost{Topic: one.Topic, From: min(out[j].From, one.From), To: max(out[j].To, one.To),
			Offsets: out[j].Offsets + one.Offsets, Noticed: out[j].Noticed}
		out = append(out[:i:i], out[i+1:]...)
		out[j] = joined
		break
	}
	return out
}

// checkInputs verifies what readers rely on.
func (m *Manifest) checkInputs() error {
	for topic, in := range m.Inputs {
		if topic == "" || in.Partitions < 1 {
			return fmt.Errorf("%w: manifest %d of shard %d reads topic %q with %d partitions",
				ErrDamaged, m.Seq, m.Shard, topic, in.Partitions)
		}
	}
	for _, l := range m.Lost {
		if l.Topic == "" || l.From >= l.To || l.Offsets < 1 || l.Offsets > l.To-l.From {
			return fmt.Errorf("%w: manifest %d of shard %d says that %d offsets of %q from %d to %d are lost",
				ErrDamaged, m.Seq, m.Shard, l.Offsets, l.Topic, l.From, l.To)
		}
	}
	return nil
}
