package generation

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	artifacts "giantstream/internal/artifact"
	"giantstream/sink"
	"giantstream/train/generation/fit"
	"giantstream/train/objectives/trainer"
)

const (
	// checkpointsName is the folder of the states of an encoder's training while it runs, and
	// ngramsName the folder of those of the n-grams' training before it.
	checkpointsName = "encoder/checkpoints/"
	ngramsName      = "encoder/ngrams/"
	// ngramsReportName is the report of the n-grams' training, while the model's runs.
	ngramsReportName = "encoder/ngrams.json"
	// checkpointsKept is how many checkpoints are kept: if the newest is damaged, there is one
	// before.
	checkpointsKept = 2
)

// folders are the folders of the checkpoints, by the part of the training.
var folders = map[fit.Part]string{fit.Whole: checkpointsName, fit.NGrams: ngramsName}

// journal keeps a training in the store. It implements fit.Journal; the n-grams are the only part
// that has a report.
type journal struct{ *build }

// Checkpoints finds what is in a folder of checkpoints.
func (j *journal) Checkpoints(ctx context.Context, p fit.Part) (fit.Checkpoints, error) {
	return j.checkpoints(ctx, folders[p])
}

func (j *journal) checkpoints(ctx context.Context, folder string) (*checkpoints, error) {
	c := &checkpoints{build: j.build, folder: j.key(folder), next: 1, last: j.Now()}
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

// PutReport stores the report and a picture of a part that has ended.
func (j *journal) PutReport(ctx context.Context, _ fit.Part, r *trainer.Report) error {
	err := save(ctx, j.Store, j.key(ngramsReportName), func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
	return errors.Join(err, j.drawCurve(ctx, ngramsCurveName, *r))
}

// Report reads the report back. The report is for people, so that a damaged one stops no training.
func (j *journal) Report(ctx context.Context, _ fit.Part) (*trainer.Report, error) {
	r, err := load(ctx, j.Store, j.key(ngramsReportName), func(r io.Reader) (*trainer.Report, error) {
		report := &trainer.Report{}
		if json.NewDecoder(r).Decode(report) != nil {
			return nil, nil //nolint:nilerr // damaged: as if there were none
		}
		return report, nil
	})
	if errors.Is(err, sink.ErrNotFound) {
		return nil, nil
	}
	return r, err
}

// remove deletes what is in the store only for a build that resumes. The encoder must be stored by
// then.
func (j *journal) remove(ctx context.Context) error {
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
	return j.Store.Delete(ctx, j.key(ngramsReportName))
}

// checkpoints are those of one part of a training. They implement fit.Checkpoints.
type checkpoints struct {
	*build
	folder string
	keys   []string // oldest first
	next   int64    // number of the next
	last   time.Time
}

// Due says whether it is time for a checkpoint.
func (c *checkpoints) Due(int64) bool {
	return c.CheckpointEvery > 0 && c.Now().Sub(c.last) >= c.CheckpointEvery
}

// Save stores a state and removes the oldest ones.
func (c *checkpoints) Save(ctx context.Context, state io.WriterTo) error {
	key := fmt.Sprintf("%s%012d", c.folder, c.next)
	err := save(ctx, c.Store, key, func(w io.Writer) error {
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
		_, err := load(ctx, c.Store, key, func(r io.Reader) (struct{}, error) { return struct{}{}, run(r) })
		if !unusable(err) {
			return err
		}
		c.resources.Log.Warn("a checkpoint of the training cannot be used; "+
			"training resumes from the one before it, or starts again",
			"checkpoint", key, "error", err)
	}
	return run(nil)
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
