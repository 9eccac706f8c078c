package training

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	artifacts "giantstream/internal/artifact"
	"giantstream/sink"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/objectives/trainer"
)

const (
	// checkpointsName is the folder of the states of an encoder's training while it runs, and
	// ngramsName the folder of those of the training of the n-grams beside a transformer.
	checkpointsName = "encoder/checkpoints/"
	ngramsName      = "encoder/ngrams/"
	// checkpointsKept is how many checkpoints are kept: if the newest is damaged, there is one
	// before.
	checkpointsKept = 2
)

// folders are the folders of the checkpoints, by the part of the training.
var folders = map[fit.Part]string{fit.Whole: checkpointsName, fit.NGrams: ngramsName}

// journal keeps a training in the store. It implements fit.Journal.
type journal struct {
	Store sink.Store
	// Prefix is that of the checkpoints' keys.
	Prefix string
	// Every is the time between two checkpoints, 0 for none.
	Every time.Duration
	Now   func() time.Time
	Log   *slog.Logger
}

// Checkpoints finds what is in a folder of checkpoints.
func (j *journal) Checkpoints(ctx context.Context, p fit.Part) (fit.Checkpoints, error) {
	return j.checkpoints(ctx, folders[p])
}

func (j *journal) checkpoints(ctx context.Context, folder string) (*checkpoints, error) {
	c := &checkpoints{journal: j, folder: j.Prefix + folder, next: 1, last: j.Now()}
	for info, err := range j.Store.List(ctx, c.folder, "") {
		if err != nil {
			return nil, err
		}
		c.keys = append(c.keys, info.Key)
		if _, err := fmt.Sscanf(info.Key[len(c.folder):], "%d", &c.next); err != nil {
			return nil, fmt.Errorf("%s is not a checkpoint's name; remove it", info.Key)
		}
		c.next++
	}
	return c, nil
}

// Remove deletes what is in the store only for a build that resumes. The encoder must be stored by
// then.
func (j *journal) Remove(ctx context.Context) error {
	for _, folder := range []string{ngramsName, checkpointsName} {
		c, err := j.checkpoints(ctx, folder)
		if err != nil {
			return err
		}
		for _, key := range c.keys {
			if err := j.Store.Delete(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkpoints are those of one part of a training. They implement fit.Checkpoints.
type checkpoints struct {
	*journal
	folder string
	keys   []string // oldest first
	next   int64    // number of the next
	last   time.Time
}

// Due says whether it is time for a checkpoint.
func (c *checkpoints) Due(int64) bool {
	return c.Every > 0 && c.Now().Sub(c.last) >= c.Every
}

// Save stores a state and removes the oldest ones.
func (c *checkpoints) Save(ctx context.Context, state io.WriterTo) error {
	key := fmt.Sprintf("%s%012d", c.folder, c.next)
	if _, err := work.PutObject(ctx, c.Store, key, func(w io.Writer) error {
		_, err := state.WriteTo(w)
		return err
	}); err != nil {
		return err
	}
	c.keys, c.next = append(c.keys, key), c.next+1
	for len(c.keys) > checkpointsKept {
		if err := c.Store.Delete(ctx, c.keys[0]); err != nil {
			return err
		}
		c.keys = c.keys[1:]
	}
	c.last = c.Now()
	return nil
}

// Resume calls run with the states from the newest on until one is usable, and at last with nil:
// training from the start.
func (c *checkpoints) Resume(ctx context.Context, run func(state io.Reader) error) error {
	for _, key := range slices.Backward(c.keys) {
		err := readObject(ctx, c.Store, key, run)
		if !unusable(err) {
			if err == nil {
				c.Log.Info("the training was resumed", "checkpoint", key)
			}
			return err
		}
		c.Log.Warn("a checkpoint of the training cannot be used; "+
			"training resumes from the one before it, or starts again",
			"checkpoint", key, "error", err)
	}
	return run(nil)
}

// readObject calls read with the bytes of an object.
func readObject(ctx context.Context, store sink.Store, key string, read func(io.Reader) error) error {
	object, err := store.Open(ctx, key)
	if err != nil {
		return err
	}
	defer object.Close()
	if err := read(sink.Sequential(object)); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// unusable says whether an error is due to the state: it is damaged, or another version of this
// program left it.
func unusable(err error) bool {
	for _, is := range []error{artifacts.ErrCorrupt, artifacts.ErrUnknown, trainer.ErrOtherRun,
		sink.ErrNotFound} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}
