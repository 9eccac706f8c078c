package generation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	artifacts "giantstream/featurize/artifact"
	"giantstream/sink"
	"giantstream/train/bag"
	"giantstream/train/xrt"
)

const (
	// checkpointsName is the folder of the states of an encoder's training
	// while it runs, and ngramsName that of its n-grams' before it.
	checkpointsName = "encoder/checkpoints/"
	ngramsName      = "encoder/ngrams/"
	// checkpointsKept is how many of them are kept: should the newest be
	// damaged, there is one before.
	checkpointsKept = 2
)

// checkpoints keeps a training in the store.
type checkpoints struct {
	f    *building
	name string   // of their folder
	keys []string // oldest first
	next int64    // number of the next
	last time.Time
}

// checkpoints finds what is in a folder of checkpoints.
func (f *building) checkpoints(name string) (*checkpoints, error) {
	c := &checkpoints{f: f, name: name, next: 1, last: f.Now()}
	if f.Store == nil {
		return c, nil
	}
	for info, err := range f.Store.List(f.ctx, f.key(name), "") {
		if err != nil {
			return nil, err
		}
		c.keys = append(c.keys, info.Key)
		if _, err := fmt.Sscanf(info.Key[len(f.key(name)):], "%d", &c.next); err != nil {
			return nil, fmt.Errorf("%s is not a checkpoint's name; remove it", info.Key)
		}
		c.next++
	}
	return c, nil
}

func (c *checkpoints) due(int64) bool {
	return c.f.Store != nil && c.f.CheckpointEvery > 0 && c.f.Now().Sub(c.last) >= c.f.CheckpointEvery
}

// save stores a state and removes the oldest ones.
func (c *checkpoints) save(ctx context.Context, state io.WriterTo) error {
	if err := c.f.readError(); err != nil {
		return err
	}
	key := c.f.key(fmt.Sprintf("%s%012d", c.name, c.next))
	err := save(ctx, c.f.Store, key, func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<20)
		if _, err := state.WriteTo(b); err != nil {
			return err
		}
		return b.Flush()
	})
	if err != nil {
		return err
	}
	c.keys, c.next = append(c.keys, key), c.next+1
	for len(c.keys) > checkpointsKept {
		if err := c.f.Store.Delete(ctx, c.keys[0]); err != nil {
			return err
		}
		c.keys = c.keys[1:]
	}
	c.last = c.f.Now()
	return nil
}

// resume calls run with the states from the newest on until one is good, and
// at last with nil: training from the start.
func (c *checkpoints) resume(run func(state io.Reader) error) error {
	for _, key := range slices.Backward(c.keys) {
		_, err := load(c.f.ctx, c.f.Store, key, func(r io.Reader) (struct{}, error) { return struct{}{}, run(r) })
		if !useless(err) {
			return err
		}
		c.f.Log.Warn("a checkpoint of the training cannot be used; the one before it may, else training starts afresh",
			"generation", c.f.doc.Generation, "checkpoint", key, "error", err)
	}
	return run(nil)
}

// useless says whether a state is to blame for the error: it is damaged, or
// was left by another version of this program.
func useless(err error) bool {
	for _, is := range []error{artifacts.ErrCorrupt, artifacts.ErrUnknown, bag.ErrOtherRun, xrt.ErrOtherRun, sink.ErrNotFound} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// removeCheckpoints deletes all states of the encoder's training, and what else is for
// a build that resumes; the encoder must be stored by then.
func (f *building) removeCheckpoints() error {
	for _, name := range []string{ngramsName, checkpointsName} {
		c, err := f.checkpoints(name)
		if err != nil {
			return err
		}
		for _, key := range c.keys {
			if err := f.Store.Delete(f.ctx, key); err != nil {
				return err
			}
		}
	}
	if f.Store == nil {
		return nil
	}
	return f.Store.Delete(f.ctx, f.key(ngramsReportName))
}
