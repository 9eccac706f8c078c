package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups are the SIGHUPs of this process. A daemon reads its configuration again on each. A signal that arrives
// before answerEach is called is kept.
type hangups struct {
	signals chan os.Signal
	stopped chan struct{}
	done    chan struct{} // nil before answerEach
}

func catchHangups() *hangups {
	h := &hangups{signals: make(chan os.Signal, 1), stopped: make(chan struct{})}
	signal.Notify(h.signals, syscall.SIGHUP)
	return h
}

// answerEach calls do for each signal until stop.
func (h *hangups) answerEach(do func()) {
	h.done = make(chan struct{})
	go func() {
		defer close(h.done)
		for {
			select {
			case <-h.signals:
				do()
			case <-h.stopped:
				return
			}
		}
	}()
}

// stop waits for a call that is in progress, and gives the signal its usual effect back.
func (h *hangups) stop() {
	signal.Stop(h.signals)
	close(h.stopped)
	if h.done != nil {
		<-h.done
	}
}
