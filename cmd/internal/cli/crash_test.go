package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/internal/canary"
)

// crashing makes a process of this test one that crashes: it has the file and the command.
const crashing = "GIANTSTREAM_TEST_CRASH"

// A process that crashes while it works shows no secret: neither in what it panics with, even if that is the
// configuration, nor in the stacks of its goroutines.
func TestCrashShowsNoSecrets(t *testing.T) {
	if how := os.Getenv(crashing); how != "" {
		crash(t, strings.Fields(how))
		return
	}
	silent := silentServer(t)
	f := plantSecrets(t, "http://"+silent, silent, "sinks.iceberg.client_password")
	f.fields["sinks.pgvector.url"] = strings.Replace(f.fields["sinks.pgvector.url"].(string), "127.0.0.1:1", silent, 1)
	file := f.write(t, map[string]any{"store": t.TempDir(), "kafka.sasl.mechanism": "PLAIN"})
	for _, command := range []string{"run -c", "sink run qdrant -c", "sink run pgvector -c", "sink run milvus -c"} {
		t.Run(command, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			process := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCrashShowsNoSecrets$")
			process.Env = append(os.Environ(), crashing+"="+command+" "+file, "GOTRACEBACK=all")
			said, err := process.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 ||
				!strings.Contains(string(said), "panic: forced") || !strings.Contains(string(said), "cli.Run(") {
				t.Errorf("it did not crash while it worked: %v\n%s", err, said)
			}
			for path, secret := range f.secrets {
				if how := canary.Find(string(said), secret); how != "" {
					t.Errorf("%s shows %s:\n%s", path, how, said)
				}
			}
		})
	}
}

// The systemd unit starts a process again after a crash, though not after an end with code 2, which Go's runtime
// uses for both.
func TestTheSystemdUnitRestartsAfterACrash(t *testing.T) {
	unit, err := os.ReadFile("../../../docs/deploy/systemd/giantstream.service")
	if err != nil {
		t.Fatal(err)
	}
	file := plantSecrets(t, "http://127.0.0.1:1", silentServer(t), "sinks.iceberg.client_password").write(t,
		map[string]any{"store": t.TempDir(), "kafka.sasl.mechanism": "PLAIN"})
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashShowsNoSecrets$")
	process.Dir = t.TempDir()
	process.Env = append(os.Environ(), crashing+"=run -c "+file)
	for line := range strings.Lines(string(unit)) {
		if variable, ok := strings.CutPrefix(strings.TrimSpace(line), "Environment="); ok {
			process.Env = append(process.Env, variable)
		}
	}
	said, err := process.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() ||
		!strings.Contains(string(said), "panic: forced") {
		t.Errorf("it ended by %v, want a signal\n%s", err, said)
	}
}

// crash runs a command that waits for its servers, and panics beside it.
func crash(t *testing.T, args []string) {
	t.Helper()
	ended := make(chan int, 1)
	go func() {
		ended <- Run(context.Background(), append(args, "--log-level", "debug"), os.Stdout, os.Stderr, nil)
	}()
	select {
	case code := <-ended:
		t.Fatalf("exit code %d", code)
	case <-time.After(time.Second):
	}
	cfg, err := config.Load(args[len(args)-1], nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { panic(fmt.Sprintf("forced: %v %+v %#v", cfg, &cfg, cfg)) }()
	select {}
}

// silentServer takes connections and never answers.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	return l.Addr().String()
}
