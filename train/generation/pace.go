package generation

import (
	"fmt"
	"log/slog"
	"time"

	"giantstream/train"
	"giantstream/train/xrt"
)

// paceEvery is how often the log is told at least how training goes on.
const paceEvery = time.Minute

// pace tells the log, and whoever watches the progress, how training goes on.
type pace struct {
	now        func() time.Time
	log        *slog.Logger
	progress   train.Progress
	generation int64
	tokens     func() int64 // that have gone through the network so far

	// The first point, which may come after a resumption, and when the log was
	// told last.
	began, told time.Time
	step, taken int64
}

// point takes a point of the curve of a run of the given number of steps.
func (p *pace) point(at xrt.Point, steps int64) {
	now, tokens := p.now(), p.tokens()
	if p.began.IsZero() {
		p.began, p.told, p.step, p.taken = now, now, at.Step, tokens
		return
	}
	elapsed := now.Sub(p.began)
	if elapsed <= 0 || at.Step <= p.step {
		return
	}
	perSecond := float64(tokens-p.taken) / elapsed.Seconds()
	left := time.Duration(float64(elapsed) * float64(steps-at.Step) / float64(at.Step-p.step)).Round(time.Second)
	train.Note(p.progress, fmt.Sprintf("%.0f tokens/s, %v left", perSecond, left))
	say := p.log.Debug
	if now.Sub(p.told) >= paceEvery {
		say, p.told = p.log.Info, now
	}
	say("training", "generation", p.generation, "step", at.Step, "of", steps, "level", at.Level, "loss", at.Loss,
		"tokens_per_second", int64(perSecond), "seconds_left", int64(left.Seconds()))
}
