package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/internal/freeport"
)

// SIGHUP makes a service read its file again. A file that it refuses changes nothing and does not end it.
func TestReloadOnHangup(t *testing.T) {
	t.Parallel()
	addr, err := freeport.Addr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pipeline.yaml")
	write := func(more string) {
		t.Helper()
		text := fmt.Sprintf("store: ./store\nshards: 1\nhttp: {listen: %q}\n%s", addr, more)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("window: {time: 1s}\n")
	cmd := command(t, "run", "-c", file)
	var errs strings.Builder
	cmd.Stderr = &errs // read after the end
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	windowTime := func() string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/config", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return ""
		}
		defer res.Body.Close()
		var fields []config.Field
		if err := json.NewDecoder(res.Body).Decode(&fields); err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			if f.Path == "window.time" {
				return f.Value
			}
		}
		return ""
	}
	await := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(longest); windowTime() != want; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("window.time is %q, want %s", windowTime(), want)
			}
		}
	}
	await("1s")
	reload := func() {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	write("window: {time: 3s}\ntrain: {encoder: bag}\n") // refused as a whole
	reload()
	write("window: {time: 2s}\n")
	reload() // a signal that comes while another waits is the same one
	await("2s")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // interrupted
	if strings.Contains(errs.String(), "to=3s") || !strings.Contains(errs.String(), "from=1s to=2s") {
		t.Error(errs.String())
	}
}
