package training

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/objectives/together"
)

var (
	errHelped = errors.New("the encoder is trained")
	errNobody = errors.New("nobody trains the encoder")
)

// patienceOf is how long a process waits for another one that trains with it.
func patienceOf(t *work.Task) time.Duration { return cmp.Or(t.Patience, defaultPatience) }

// leadTraining trains the encoder, and lets the other tasks of the stage help.
func leadTraining(ctx context.Context, t *work.Task, in fit.Inputs, j *journal) (*fit.Trained, string, error) {
	r := t.TaskResources()
	l := &leader{journal: j, task: t, meeting: &meeting{ctx: ctx, store: t.Store, name: leaderName,
		patience: patienceOf(t)}, expected: t.Plan.TrainingTasks() - 1}
	trained, why, err := fit.TrainOrTextAlone(ctx, t.Doc.Settings.Encoder, fit.Training{Inputs: in,
		Settings: t.Doc.Settings, Resources: r, Journal: l,
		Share: func(net train.Sliced) train.Network { return together.New(net, l.group()) }})
	if err != nil {
		return nil, "", explain(err)
	}
	trained.Uninterrupted() // the same bytes, however often it was resumed
	return trained, why, nil
}

// leader keeps checkpoints, and invites helpers between two steps. It implements fit.Journal.
type leader struct {
	*journal
	*meeting
	task     *work.Task
	expected int
}

// group is nil where nobody can help.
func (l *leader) group() together.Group {
	if l.expected == 0 {
		return nil
	}
	return l.meeting
}

// Checkpoints implements fit.Journal: helpers can join the training of the whole encoder.
func (l *leader) Checkpoints(ctx context.Context, p fit.Part) (fit.Checkpoints, error) {
	c, err := l.journal.Checkpoints(ctx, p)
	if err != nil || p != fit.Whole || l.expected == 0 {
		return c, err
	}
	return &invitations{Checkpoints: c, leader: l}, nil
}

// invitations are the checkpoints of a training that helpers can join.
type invitations struct {
	fit.Checkpoints
	*leader
	known   []string // helpers that have asked so far
	waiting []string // those of them that are not invited yet
	looked  time.Time
	due     bool // of a checkpoint to resume from
}

// lookEvery is how often the leader looks for helpers.
const lookEvery = 2 * time.Second

// Due implements fit.Checkpoints.
func (i *invitations) Due(step int64) bool {
	i.due = i.Checkpoints.Due(step)
	if time.Since(i.looked) > lookEvery {
		i.findHelpers()
	}
	return i.due || len(i.waiting) > 0
}

// findHelpers finds helpers that want to take part. A list that fails is read again later.
func (i *invitations) findHelpers() {
	i.looked = time.Now()
	prefix := i.folder + "join-"
	for info, err := range i.meeting.store.List(i.ctx, prefix, "") {
		if err != nil {
			return
		}
		if name := strings.TrimPrefix(info.Key, prefix); !slices.Contains(i.known, name) {
			i.known, i.waiting = append(i.known, name), append(i.waiting, name)
		}
	}
}

// Save implements fit.Checkpoints: it stores a checkpoint if one is due, and invites who waits.
func (i *invitations) Save(ctx context.Context, state io.WriterTo) error {
	if i.due {
		if err := i.Checkpoints.Save(ctx, state); err != nil {
			return err
		}
	}
	if len(i.waiting) == 0 {
		return nil
	}
	in := invitation{Done: i.done, Roster: i.roster, State: fmt.Sprintf("%sstate-%012d", i.folder, i.done)}
	if _, err := work.PutObject(ctx, i.task.Store, in.State, func(w io.Writer) error {
		_, err := state.WriteTo(w)
		return err
	}); err != nil {
		return err
	}
	for _, name := range i.waiting {
		if err := putDocument(ctx, i.meeting.store, i.folder+"welcome-"+name, in); err != nil {
			return err
		}
	}
	i.joining, i.waiting = append(i.joining, i.waiting...), nil
	return nil
}

// Resume implements fit.Checkpoints. Each attempt is a meeting of its own.
func (i *invitations) Resume(ctx context.Context, run func(state io.Reader) error) error {
	return i.Checkpoints.Resume(ctx, func(state io.Reader) error {
		id := rand.Text()
		all := groupFolder(i.task.Generation)
		m := i.meeting
		m.folder, m.roster, m.joining, m.done, m.kept = all+id+"/", []string{m.name}, nil, 0, nil
		i.known, i.waiting = nil, nil
		if err := putDocument(ctx, m.store, all+"leader.json", meetingID{id}); err != nil {
			return err
		}
		for begun := time.Now(); len(i.known) < i.expected && time.Since(begun) < m.patience; {
			if i.findHelpers(); len(i.known) < i.expected {
				if err := sleep(ctx, 100*time.Millisecond); err != nil {
					return err
				}
			}
		}
		return run(state)
	})
}

// helpTraining works on the slices of the training that task 0 of the stage gives it. It leaves nothing. What goes
// wrong here does no harm there.
func helpTraining(ctx context.Context, t *work.Task) error {
	s, err := takeSample(ctx, t)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // temporary files
	r := t.TaskResources()
	for {
		h := &helper{task: t}
		_, _, err := fit.TrainOrTextAlone(ctx, t.Doc.Settings.Encoder, fit.Training{Inputs: s.Inputs,
			Settings: t.Doc.Settings, Resources: r, Journal: h,
			Share: func(net train.Sliced) train.Network { return together.New(net, h.meeting) }})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil || errors.Is(err, errHelped):
			return nil
		case errors.Is(err, stages.ErrNoPlan):
			return err
		case errors.Is(err, errNobody):
			r.Log.Info("nobody trains the encoder; this task is not needed")
			return nil
		}
		r.Log.Warn("this process does not take part in the training any more; it asks again", "error", err)
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// helper joins a training where the leader lets it. It implements fit.Journal and fit.Checkpoints.
type helper struct {
	task    *work.Task
	meeting *meeting
}

// Checkpoints implements fit.Journal: the leader trains all other parts by itself.
func (h *helper) Checkpoints(_ context.Context, p fit.Part) (fit.Checkpoints, error) {
	if p != fit.Whole {
		return nil, errHelped
	}
	return h, nil
}

// Due and Save implement fit.Checkpoints.
func (h *helper) Due(int64) bool                          { return false }
func (h *helper) Save(context.Context, io.WriterTo) error { return nil }

// Resume implements fit.Checkpoints: it continues from where the leader is.
func (h *helper) Resume(ctx context.Context, run func(state io.Reader) error) error {
	in, err := h.join(ctx)
	if err != nil {
		return err
	}
	object, err := h.task.Store.Open(ctx, in.State)
	if err != nil {
		return err
	}
	defer object.Close()
	if err := run(sink.Sequential(object)); err != nil {
		return err
	}
	return errHelped
}

// join asks the leader to take part, until it is invited.
func (h *helper) join(ctx context.Context) (in invitation, err error) {
	t := h.task
	all := groupFolder(t.Generation)
	name := fmt.Sprintf("%d-%s", t.Partition, rand.Text())
	h.meeting = &meeting{ctx: ctx, store: t.Store, all: all, name: name, patience: patienceOf(t)}
	for begun, asked := time.Now(), ""; time.Since(begun) < 4*patienceOf(t); {
		missing := new(work.MissingError)
		if _, err := t.OutputsOf(ctx, stages.Encoder, 0); err == nil {
			return in, errHelped
		} else if !errors.As(err, &missing) {
			return in, err
		}
		if _, err := stages.LoadPlan(ctx, t.Store, t.Generation); err != nil {
			return in, err
		}
		now, err := leaderNow(ctx, t.Store, all)
		if err == nil && now != asked {
			h.meeting.folder, asked = all+now+"/", now
			err = sink.PutBytes(ctx, t.Store, h.meeting.folder+"join-"+name, []byte(name))
		}
		if err != nil && !errors.Is(err, sink.ErrNotFound) {
			return in, err
		}
		if asked != "" {
			switch err := h.meeting.document(h.meeting.folder+"welcome-"+name, 100*time.Millisecond, &in); {
			case err == nil:
				h.meeting.done, h.meeting.roster = in.Done, in.Roster
				return in, nil
			case !errors.Is(err, errSilent):
				return in, err
			}
		} else if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return in, err
		}
	}
	return in, errNobody
}
