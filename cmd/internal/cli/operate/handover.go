package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/embeddingtopic"
	"giantstream/ingest/owner"
	"giantstream/internal/retry"
	"giantstream/sink/embedding"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// handover is a change of the mapping under way: the pipeline of a new store, which reads everything again and then
// takes over from the former one.
type handover struct {
	*remapping
	*command.Workplace
	change  commitlog.Remap
	service *service.Service
	topics  []string // that are taken over; none with the embedded broker
	result  remapResult
}

// remapResult is what a run prints.
type remapResult struct {
	From       string `json:"from"`
	Into       string `json:"into"`
	Already    bool   `json:"already,omitempty"`
	Pipeline   string `json:"pipeline"`
	ID         string `json:"id"`
	Generation int64  `json:"generation"`
	// Published is up to which manifest of each shard the former pipeline has published.
	Published []int64 `json:"published"`
	// Deleted is how many nodes of the former store are not in the new store, whose embeddings were deleted.
	Deleted int64 `json:"deleted"`
}

// room is between the numbers of generations of two pipelines. The former one builds more of them while the records
// are read again, and no consumer may meet a number twice.
const room = 1000

func (f *remapFlags) remap(ctx context.Context, a *command.App, r *remapping) (err error) {
	if err := r.refuse(); err != nil {
		return err
	}
	h := &handover{remapping: r}
	files, err := f.inputs.Open(ctx, r.cfg)
	if err != nil {
		return err
	}
	level := ""
	if f.pipeline.File != "" {
		level = r.cfg.Log.Level
	}
	if h.Workplace, err = a.OpenWorkplace(ctx, r.cfg, level); err != nil {
		return err
	}
	if err := h.checkNames(); err != nil {
		return err
	}
	h.change = commitlog.Remap{From: r.from, FromID: r.id.ID, Into: h.Store, Shards: r.id.Shards,
		Groups: []string{r.before.Group(), r.before.Group() + "-embed"}}
	h.result = remapResult{From: r.from.URL(), Into: h.Store.URL()}
	if h.result.Already, err = h.change.Begin(ctx); err != nil {
		return err
	}
	if h.result.Already {
		return h.print(a, f)
	}
	if err := h.numberGenerations(ctx); err != nil {
		return err
	}
	if r.cfg.Kafka.Embedded() && !files.NonEmpty() {
		return command.UsageError(errors.New("the broker is inside the process that runs, so no other can read its " +
			"topics: give the files again, with the flags of 'run'"))
	}
	closeDevice, err := a.OpenDevice(h.Workplace)
	if err != nil {
		return err
	}
	defer closeDevice()
	h.service, err = service.Start(ctx, service.Options{Config: r.cfg, Store: h.Store, Log: h.Log, Device: h.Device,
		Progress: h.Progress, Roles: service.Roles{Stream: true, Refresh: true}, Load: files.NonEmpty(),
		Resent: files.NonEmpty(), AllowUnmatched: f.inputs.AllowsUnmatched()})
	if err != nil {
		return err
	}
	defer func() {
		h.Progress.Done()
		if err = command.CloseService(h.service, err); err == nil {
			err = h.print(a, f)
		}
	}()
	if files.NonEmpty() {
		if _, err := wiring.Backfill(ctx, r.cfg, h.service.Client(), files, h.Progress); err != nil {
			return err
		}
	}
	if err := h.catchUp(ctx, f.acceptMissing); err != nil {
		return err
	}
	return h.handOver(ctx)
}

// checkNames refuses a configuration that would meet the former pipeline. What it cannot know is refused where it is
// met: groups, mirror topics and states have the id of their pipeline.
func (h *handover) checkNames() error {
	switch {
	case len(h.report.Changes) == 0:
		return command.UsageError(errors.New("the mapping is that of the store: nothing is to be read again"))
	case h.Store.URL() == h.from.URL():
		return command.UsageError(fmt.Errorf("store: %s is that of before: name an empty folder or an unused prefix, "+
			"and another pipeline and state_dir", h.cfg.Store))
	case !h.cfg.Kafka.Embedded() && h.cfg.Pipeline == h.id.Name:
		return command.UsageError(fmt.Errorf("pipeline: %s is that of before, which goes on meanwhile: name another "+
			"one, such as %s-2, and with it another consumer group and mirror topic; and another state_dir",
			h.cfg.Pipeline, h.cfg.Pipeline))
	}
	return nil
}

// numberGenerations lets the generations of an empty store have numbers that no consumer has met.
func (h *handover) numberGenerations(ctx context.Context) error {
	published, err := generation.Numbers(ctx, h.from)
	if err != nil || len(published) == 0 {
		return err
	}
	return generation.BeginAt(ctx, h.Store, published[len(published)-1]+room)
}

// catchUp returns once everything is read again and a generation covers it.
func (h *handover) catchUp(ctx context.Context, acceptMissing bool) error {
	if err := h.service.Drain(ctx); err != nil {
		return err
	}
	if _, _, err := h.service.UpToDate(ctx); err != nil {
		return err
	}
	// What the former pipeline has committed by now was sent before the drain that follows.
	was, err := commitlog.CurrentCut(ctx, h.from, h.id.Shards)
	if err != nil {
		return err
	}
	if err := h.service.Drain(ctx); err != nil {
		return err
	}
	missing, example := int64(0), ""
	err = h.eachUnheard(ctx, was, func(row commitlog.Row) error {
		if !row.Deleted {
			missing, example = missing+1, row.NodeID
		}
		return nil
	})
	if err != nil || missing == 0 || acceptMissing {
		return err
	}
	return fmt.Errorf("the new store lacks %s of the store of before, such as %q: their records are deleted or dead "+
		"letters ('giantstream dlq list'). Send them again, or have their embeddings deleted by --accept-missing",
		command.Plural(missing, "node"), example)
}

// eachUnheard calls each with the rows of nodes that the former store has at a cut and the new one has no row of.
func (h *handover) eachUnheard(ctx context.Context, was commitlog.Cut, each func(commitlog.Row) error) error {
	now, err := commitlog.CurrentCut(ctx, h.Store, h.id.Shards)
	if err != nil {
		return err
	}
	for shard := range h.id.Shards {
		if err := commitlog.Unheard(ctx, h.from, h.Store, was, now, shard, each); err != nil {
			return err
		}
	}
	return nil
}

// handOver ends the publication of the former pipeline and lets that of the new store publish. Each step may be
// repeated.
func (h *handover) handOver(ctx context.Context) error {
	if !h.cfg.Kafka.Embedded() {
		topics := wiring.TopicsOf(h.cfg)
		h.topics = append(h.topics, topics.Embeddings)
		if topics.Canary != "" {
			h.topics = append(h.topics, topics.Canary)
		}
	}
	if err := h.checkOwners(ctx); err != nil {
		return err
	}
	if err := h.change.Leave(ctx); err != nil {
		return err
	}
	if err := h.claim(ctx); err != nil {
		return err
	}
	// The former pipeline has published its last record. After this the new one has read all that it had.
	if err := h.service.Drain(ctx); err != nil {
		return err
	}
	if err := h.deleteUnheard(ctx); err != nil {
		return err
	}
	for shard := range h.id.Shards {
		at, err := commitlog.LoadPublished(ctx, h.from, shard)
		if err != nil {
			return err
		}
		h.result.Published = append(h.result.Published, at.Seq)
	}
	h.result.Generation = h.service.Current().Doc.Generation
	return h.change.Complete(ctx)
}

// checkOwners refuses topics of a third pipeline, and learns in which groups the former one is.
func (h *handover) checkOwners(ctx context.Context) error {
	for _, topic := range h.topics {
		o, err := h.ownerOf(ctx, topic)
		switch {
		case err != nil:
			return err
		case o == nil || o.ID == h.service.Identity().ID:
		case o.ID == h.id.ID:
			h.change.Groups = o.Groups
		default:
			return fmt.Errorf("kafka topic %q %w: %s, not to that of %s", topic, owner.ErrForeign, o.Pipeline(),
				h.from.URL())
		}
	}
	return nil
}

func (h *handover) ownerOf(ctx context.Context, topic string) (*owner.Owner, error) {
	ids, err := h.service.Client().Identify(ctx, topic)
	if err != nil {
		return nil, err
	}
	return owner.Load(ctx, h.service.Client(), topic, ids[topic].ID)
}

// claim takes the topics over and returns once no worker of the former pipeline runs: those that publish end by
// themselves, within seconds.
func (h *handover) claim(ctx context.Context) error {
	mine, err := wiring.OwnerOf(ctx, h.cfg, h.Store, h.service.Identity())
	if err != nil {
		return err
	}
	mine.Continues = h.id.ID
	for _, topic := range h.topics {
		if _, _, err := owner.Ensure(ctx, h.service.Client(), topic, mine); err != nil {
			return err
		}
	}
	if len(h.topics) == 0 {
		return nil
	}
	h.Progress.Stage("wait until the workers of "+h.id.Name+" have ended", 0)
	defer h.Progress.Done()
	return retry.Poll(ctx, time.Second, func() (bool, error) {
		running := 0
		for _, group := range h.change.Groups {
			n, err := h.service.Client().Members(ctx, group)
			if err != nil {
				return false, err
			}
			running += n
		}
		if running > 0 {
			h.Progress.Note(command.Plural(running, "member") + " left; stop those that do not publish")
		}
		return running == 0, nil
	})
}

// deleteUnheard sends tombstones of nodes that the former pipeline may have published, and that the new one has no
// row of. Of deletions that it has rows of, the new pipeline sends them itself.
func (h *handover) deleteUnheard(ctx context.Context) error {
	was, err := commitlog.CurrentCut(ctx, h.from, h.id.Shards)
	if err != nil || len(h.topics) == 0 {
		return err
	}
	format, err := embeddingtopic.ParseFormat(h.cfg.Sink.Format)
	if err != nil {
		return err
	}
	for _, topic := range h.topics {
		h.result.Deleted = 0
		p := embeddingtopic.NewPublisher(h.service.Client(), topic, format)
		var out []embedding.Record
		send := func() error {
			err := p.Publish(ctx, out)
			out = out[:0]
			return err
		}
		err := h.eachUnheard(ctx, was, func(row commitlog.Row) error {
			h.result.Deleted++
			out = append(out, embedding.Record{NodeID: row.NodeID, EventTime: row.EventTime, Deleted: true,
				Generation: h.service.Current().Doc.Generation})
			if len(out) < 1000 {
				return nil
			}
			return send()
		})
		if err == nil {
			err = send()
		}
		if err = errors.Join(err, p.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (h *handover) print(a *command.App, f *remapFlags) error {
	h.result.Pipeline = h.cfg.Pipeline
	if h.service != nil {
		h.result.ID = h.service.Identity().ID
	}
	if f.asJSON {
		return command.WriteJSON(a.Out, h.result)
	}
	p := &command.Printer{Out: a.Out}
	if h.result.Already {
		p.Line("%s has taken over already. Start workers with it.", h.result.Into)
		return p.Err
	}
	p.Line("pipeline %s (id %s) in %s has taken over from %s (id %s) in %s", h.result.Pipeline, h.result.ID,
		h.result.Into, h.id.Name, h.id.ID, h.result.From)
	for shard, seq := range h.result.Published {
		p.Line("  shard %d was published up to manifest %s", shard, console.Count(seq))
	}
	if h.result.Deleted > 0 {
		p.Line("  %s that it has no record of were deleted from the topic", command.Plural(h.result.Deleted, "node"))
	}
	p.Line("Start workers with the new configuration: they publish generation %d over what is there.",
		h.result.Generation)
	p.Line("The way back is 'giantstream remap' with the configuration of before and --from %s.", h.result.Into)
	return p.Err
}
