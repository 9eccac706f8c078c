package heads

import (
	"sync"

	"giantstream/stream/commitlog"
)

// wakeups are one signal per follower.
type wakeups struct {
	mu    sync.Mutex
	chans map[follower]chan struct{}
}

type follower struct {
	shard  int
	outlet commitlog.Outlet
}

// Listen returns the signal of the follower of a shard that publishes to an outlet.
func (w *wakeups) Listen(shard int, outlet commitlog.Outlet) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chans == nil {
		w.chans = map[follower]chan struct{}{}
	}
	f := follower{shard, outlet}
	if w.chans[f] == nil {
		w.chans[f] = make(chan struct{}, 1)
	}
	return w.chans[f]
}

// wake signals one shard's followers; it never blocks.
func (w *wakeups) wake(shard int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for f, c := range w.chans {
		if f.shard == shard {
			signal(c)
		}
	}
}

// WakeAll signals every follower.
func (w *wakeups) WakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.chans {
		signal(c)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
