package e2e_test

import (
	"strings"
	"testing"
	"time"

	"giantstream/cmd/internal/service/refreshing"
	"giantstream/sink/lease"
	"giantstream/stream/commitlog"
)

// While one process builds a generation, others do not, and they log which process it is.
func TestTheBuilderIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := openStore(t, dir)
	id := commitlog.Identity{Name: "test", Shards: 1}
	if _, err := commitlog.EnsureIdentity(t.Context(), store, id, false); err != nil {
		t.Fatal(err)
	}
	if out := succeed(t, "status", "--store", dir); strings.Contains(out, "refresh") {
		t.Errorf("nobody builds, but status says\n%s", out)
	}
	l, err := lease.New(lease.Options{Store: store, Name: refreshing.RefreshLease, Holder: "worker-7",
		TTL: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	held, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, release := held.Keep(t.Context())
	defer release()

	if out := succeed(t, "status", "--store", dir); !strings.Contains(out, "refresh: worker-7 is building") {
		t.Errorf("worker-7 builds, but status says\n%s", out)
	}
	var st struct {
		Refresh lease.Record `json:"refresh"`
	}
	succeedJSON(t, &st, "status", "--store", dir, "--json")
	if st.Refresh.Holder != "worker-7" || st.Refresh.Number != 1 {
		t.Errorf("status --json: %+v", st.Refresh)
	}
	for _, command := range []string{"build", "rebuild"} {
		r := run(t, command, "--store", dir)
		if r.code != 1 || !strings.Contains(r.stderr, "held by worker-7") {
			t.Errorf("%s: exit code %d\n%s", command, r.code, r.stderr)
		}
	}
}
