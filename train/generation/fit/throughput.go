package fit

import (
	"fmt"
	"log/slog"
	"time"

	"giantstream/internal/ambient"
	"giantstream/train/objectives/trainer"
)

// logEvery is the longest time between two lines of the log about a training.
const logEvery = time.Minute

// throughput reports to the log and to the progress how fast a training is.
type throughput struct {
	now      func() time.Time
	log      *slog.Logger
	progress ambient.Progress
	tokens   func() int64 // that have gone through the network so far

	// When the first point came, which may follow a resumption, and when the last line was logged.
	began, logged time.Time
	step, taken   int64 // at the first point
}

// point takes a point of the curve of a run of the given number of steps.
func (t *throughput) point(at trainer.Point, steps int64) {
	now, tokens := t.now(), t.tokens()
	if t.began.IsZero() {
		t.began, t.logged, t.step, t.taken = now, now, at.Step, tokens
		return
	}
	elapsed := now.Sub(t.began)
	if elapsed <= 0 || at.Step <= t.step {
		return
	}
	perSecond := float64(tokens-t.taken) / elapsed.Seconds()
	left := time.Duration(float64(elapsed) * float64(steps-at.Step) / float64(at.Step-t.step)).Round(time.Second)
	ambient.Note(t.progress, fmt.Sprintf("%.0f tokens/s, %v left", perSecond, left))
	log := t.log.Debug
	if now.Sub(t.logged) >= logEvery {
		log, t.logged = t.log.Info, now
	}
	log("training", "step", at.Step, "of", steps, "level", at.Level, "loss", at.Loss,
		"tokens_per_second", int64(perSecond), "seconds_left", int64(left.Seconds()))
}
