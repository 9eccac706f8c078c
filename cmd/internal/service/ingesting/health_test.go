package ingesting

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"giantstream/cmd/internal/service/membership"
	"giantstream/cmd/internal/service/settings"
	"giantstream/config"
	"giantstream/stream/commitlog"

	"github.com/prometheus/client_golang/prometheus"
)

// A process that streams is ready while it has a place in its group, and while its shards commit what there is to read.
func TestReadyMeansProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config.Default()
		in := &Ingest{Streams: true, Groups: membership.Membership{SessionTimeout: 10 * time.Second},
			Settings: settings.New(&cfg, prometheus.NewRegistry())}
		expect := func(when, why string) {
			t.Helper()
			if got := in.Unready(); (why == "") != (got == "") || !strings.Contains(got, why) {
				t.Errorf("%s: %q, want %q", when, got, why)
			}
		}
		expect("before it has joined", "joining the consumer group")
		in.place.take()
		expect("with a place", "")
		in.place.lose()
		time.Sleep(9 * time.Second)
		expect("while the group forms again", "")
		time.Sleep(2 * time.Second)
		expect("after a session without a place", "no shards for 11s")
		in.place.failed(errors.New("no broker answers"))
		expect("with a reason", "has yet to form again: no broker answers")
		in.place.take()

		w, gone := in.Watches.Open(3, &commitlog.Manifest{})
		defer gone()
		w.ready = true
		time.Sleep(time.Hour)
		expect("with nothing to read", "")
		w.behind, w.even = 5, time.Now()
		time.Sleep(stalled)
		expect("while a window may be open", "")
		time.Sleep(10*cfg.Window.Time + time.Second)
		expect("with records and no commit", "shard 3 has records to read and has committed nothing")
		w.committed(&commitlog.Manifest{})
		expect("after a commit", "")
	})
}
