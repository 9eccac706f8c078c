// Mutate checks the tests of the protocol: it breaks the protocol's code in one line at a time, and says which tests
// notice. A mutation that none notices is a rule that nothing tests. For sinks of vector databases, the suite of faults
// stands for the simulation; Milvus's needs Milvus Lite, without which its mutations are left out. Promises beyond the
// protocol have a named test each.
//
//	go run ./cmd/dev/mutate              # all mutations, the simulation and the packages' own tests
//	go run ./cmd/dev/mutate -only 7,12   # some of them
//
// The source files stay as they are: the compiler is given the changed file in place of the original (-overlay).
// mutations.go has the table.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type options struct {
	root  string
	tool  string
	seeds int
	allow int
	quick bool
	only  []int
}

func main() {
	var o options
	only := ""
	flag.StringVar(&o.root, "root", ".", "root of the repository")
	flag.StringVar(&o.tool, "go", "go", "the go command")
	flag.IntVar(&o.seeds, "seeds", 300, "seeds of the simulation for each mutation")
	flag.IntVar(&o.allow, "allow", 1, "how many mutations may survive")
	flag.BoolVar(&o.quick, "quick", false, "run the tests of the packages only for what the simulation has not found")
	flag.StringVar(&only, "only", "", "numbers of the mutations to try, separated by commas; all if empty")
	flag.Parse()
	for n := range strings.SplitSeq(only, ",") {
		if n != "" {
			i, err := strconv.Atoi(n)
			if err != nil || i < 1 || i > len(mutations) {
				fmt.Fprintf(os.Stderr, "mutate: there is no mutation %q, they are 1 to %d\n", n, len(mutations))
				os.Exit(2)
			}
			o.only = append(o.only, i)
		}
	}
	if err := run(context.Background(), &o); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	o.root = root
	// Apply every mutation once before the long run, so that a quoted line that no longer exists is reported at once.
	changed := make([][]byte, len(mutations))
	for i := range mutations {
		var merr error
		changed[i], merr = mutations[i].apply(root)
		err = errors.Join(err, merr)
	}
	if err != nil {
		return err
	}
	checked := map[string]bool{}
	for i := range mutations {
		tests := sinkDir(mutations[i].file) + strings.Join(named[mutations[i].file], " ")
		if !o.wants(i) || checked[tests] {
			continue
		}
		checked[tests] = true
		f, err := o.find(ctx, nil, mutations[i].file)
		if err != nil {
			return err
		}
		if f.simulation || f.tests {
			return fmt.Errorf("the tests fail without a mutation: simulation %t, packages' tests %t\n%s", f.simulation,
				f.tests, f.says)
		}
	}
	var survived []int
	tried, bySimulation, byTests := 0, 0, 0
	fmt.Println("  # simulation tests   mutation")
	for i := range mutations {
		m := &mutations[i]
		if !o.wants(i) {
			continue
		}
		f, err := o.find(ctx, changed[i], m.file)
		if err != nil {
			return fmt.Errorf("mutation %d, %q: %w", i+1, m.what, err)
		}
		if f.skipped {
			fmt.Printf("%3d left out: its tests skip here    %s: %s\n", i+1, m.file, m.what)
			continue
		}
		tried++
		if f.simulation {
			bySimulation++
		}
		if f.tests {
			byTests++
		}
		if !f.simulation && !f.tests {
			survived = append(survived, i+1)
		}
		tests := word(f.tests)
		if f.simulation && o.quick {
			tests = "not run"
		}
		fmt.Printf("%3d %-10s %-7s %s: %s\n", i+1, word(f.simulation), tests, m.file, m.what)
		if f.says != "" {
			fmt.Printf("    %s\n", f.says)
		}
	}
	fmt.Printf("\n%d of %d mutations found: %d by the simulation (%d seeds), %d by the tests of the packages\n",
		tried-len(survived), tried, bySimulation, o.seeds, byTests)
	if len(survived) > o.allow {
		return fmt.Errorf("nothing notices mutations %v: write a test for each, or remove it from the table if it "+
			"changes no behaviour", survived)
	}
	return nil
}

// wants reports whether the mutation of this index is to be tried.
func (o *options) wants(i int) bool { return len(o.only) == 0 || slices.Contains(o.only, i+1) }

// sinkDir is the package of a file of a vector database, "" for files of the protocol.
func sinkDir(file string) string {
	if dir := path.Dir(file); strings.HasPrefix(dir, "sink/vectordb/") {
		return dir
	}
	return ""
}

func word(found bool) string {
	if found {
		return "found"
	}
	return "-"
}

// apply returns the file with the mutation.
func (m *mutation) apply(root string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(data), m.old); n != 1 {
		return nil, fmt.Errorf("mutation %q: %s has its text %d times instead of once; bring "+
			"cmd/dev/mutate/mutations.go up to date with the code:\n%s", m.what, m.file, n, m.old)
	}
	return []byte(strings.Replace(string(data), m.old, m.new, 1)), nil
}

// found says who notices a mutation, and what the simulation says about it.
type found struct {
	simulation, tests, skipped bool
	says                       string
}

// find runs the tests with a file changed, or as it is if changed is nil.
func (o *options) find(ctx context.Context, changed []byte, file string) (f found, err error) {
	overlay, done, err := o.overlay(changed, file)
	if err != nil {
		return f, err
	}
	defer done()
	// What does not compile would be found by any test.
	if out, err := o.command(ctx, overlay, "build", "./"+path.Dir(file)); err != nil {
		return f, fmt.Errorf("%w:\n%s", err, out)
	}
	if tests := named[file]; tests != nil {
		out, err := o.test(ctx, overlay, tests...)
		if f.tests = err != nil; f.tests {
			f.says = firstLine(out)
		}
		return f, nil
	}
	simulation, tests := []string{"./cmd/internal/sim", "-run", "^TestSimulation$", "-args", "-seeds",
		strconv.Itoa(o.seeds)}, packages
	if dir := sinkDir(file); dir != "" {
		simulation = []string{"-v", "./" + dir, "-run", "^TestIndex$/^faults$", "-args", "-sink-seeds", "10"}
		tests = []string{"./" + dir, "-skip", "^TestIndex$"}
	}
	out, err := o.test(ctx, overlay, simulation...)
	f.simulation = err != nil
	if f.skipped = strings.Contains(out, "--- SKIP: TestIndex"); f.skipped {
		return f, nil
	}
	if m := rule.FindStringSubmatch(out); m != nil {
		f.says = m[1]
	} else if err != nil {
		f.says = firstLine(out)
	}
	if f.simulation && o.quick {
		return f, nil
	}
	out, err = o.test(ctx, overlay, tests...)
	if f.tests = err != nil; f.tests && f.says == "" {
		f.says = firstLine(out)
	}
	return f, nil
}

// packages have tests of the protocol of their own.
var packages = []string{"-short", "./stream/...", "./sink/lease"}

var rule = regexp.MustCompile(`(?m)(seed \d+ breaks a rule: .{0,220})`)

// failure is a line of a test's output that says what is wrong.
var failure = regexp.MustCompile(`(?m)^(--- FAIL.*|panic: .*|.*\.go:\d+:\d+: .*|.*timed out.*)$`)

func firstLine(out string) string {
	if m := failure.FindString(out); m != "" {
		return m
	}
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	return line
}

// testTime bounds one run of tests. A mutation may make one wait for ever.
const testTime = 10 * time.Minute

func (o *options) test(ctx context.Context, overlay string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, testTime+time.Minute)
	defer cancel()
	// What tests build is no input that the cache of results knows.
	test := []string{"test", "-count=1", "-timeout", testTime.String()}
	if args[0] == "-C" { // another module
		test, args = append(args[:2:2], test...), args[2:]
	}
	return o.command(ctx, overlay, append(test, args...)...)
}

// command runs the go tool, and with the same overlay what tests build.
func (o *options) command(ctx context.Context, overlay string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, o.tool, args...)
	cmd.Dir = o.root
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// overlay writes what the compiler's -overlay reads: by original file, the file in its place.
func (o *options) overlay(changed []byte, file string) (name string, done func(), err error) {
	dir, err := os.MkdirTemp("", "giantstream-mutate-*")
	if err != nil {
		return "", nil, err
	}
	replace := map[string]string{}
	if changed != nil {
		replaced := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replaced, changed, 0o600); err != nil {
			return "", nil, err
		}
		replace[filepath.Join(o.root, file)] = replaced
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	name = filepath.Join(dir, "overlay.json")
	return name, func() { _ = os.RemoveAll(dir) }, os.WriteFile(name, data, 0o600)
}
