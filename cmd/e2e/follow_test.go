package e2e_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// stage is a stage of a run, as its log names it, and how long it took.
type stage struct {
	name string
	took time.Duration
}

// process is a running `giantstream run` whose log is followed.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines <-chan string
	tail  []string

	// ended are the stages that have ended so far, with the time since the one before.
	ended []stage
	last  time.Time
}

// start starts the program with logs as JSON.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := command(t, append(args, "--log-format", "json", "--log-level", "info")...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1024)
	now := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(lines)
		in := bufio.NewReader(stderr)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				return // the process has ended, or is about to
			}
		}
	}()
	return &process{t: t, cmd: cmd, last: now, lines: lines}
}

// alarm is asked at the start of a process, with "", and then at the end of each stage, with its
// name. A channel that it returns says when to send the process a signal.
type alarm func(stage string) <-chan time.Time

// wait follows the process to its end, and returns its exit code, -1 if a signal was what ended it.
// The signal is sent when the alarm goes off; nil for none.
func (p *process) wait(signal os.Signal, at alarm) (code int) {
	p.t.Helper()
	var due <-chan time.Time
	if at != nil {
		due = at("")
	}
	for open := true; open; {
		var line string
		select {
		case line, open = <-p.lines:
			if name, ok := p.follow(line); ok && at != nil {
				if c := at(name); c != nil {
					due = c
				}
			}
		case <-due:
			due = nil
			if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
				p.t.Fatal(err)
			}
		}
	}
	err := p.cmd.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// await follows the process until its log has a message.
func (p *process) await(message string) {
	p.t.Helper()
	for line := range p.lines {
		p.follow(line)
		if strings.Contains(line, message) {
			return
		}
	}
	p.t.Fatalf("the process ended without %q\n%s", message, p.log())
}

// follow notes a line of the log and returns the stage that it ends, if it does.
func (p *process) follow(line string) (string, bool) {
	if line == "" {
		return "", false
	}
	if p.tail = append(p.tail, line); len(p.tail) > 50 {
		p.tail = p.tail[1:]
	}
	var entry struct{ Msg, Stage string }
	if json.Unmarshal([]byte(line), &entry) != nil || entry.Msg != "stage done" {
		return "", false
	}
	now := time.Now()
	p.ended = append(p.ended, stage{entry.Stage, now.Sub(p.last)})
	p.last = now
	return entry.Stage, true
}

// timeline returns the stages of a process that has ended.
func (p *process) timeline() []stage { return append(p.ended, stage{took: time.Since(p.last)}) }

// log returns the end of what the process wrote to stderr.
func (p *process) log() string { return strings.Join(p.tail, "") }
