package schedulers_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// examples has the examples of docs/deploy/build.
var examples = filepath.Join(here, "../../../docs/deploy/build")

const schedulersConfig = `
pipeline: test
shards: 2
featurize:
  projection_dim: 24
  tree: {leaf_size: 8, branching: 4}
embedding: {dim: 16}
train: {encoder: linear}
evaluate: {probe_rates: [0.5]}
http: {listen: ""}
log: {level: warn}
`

// flaky stands for the program. Of every stage, the first attempt at task 1 does its work and fails, as one whose
// machine dies before the scheduler hears of it, unless $STEADY is set. In the stage $ABSENT, there are no tasks.
const flaky = `#!/bin/sh
if [ "$1 $2" = "build stage" ]; then
	echo "$3 $5" >>"$FLAKY/attempts"
	if [ "$3" = "$ABSENT" ]; then exit 2; fi
	if [ "$5$STEADY" = 1 ] && mkdir "$FLAKY/$3" 2>/dev/null; then
		"$GIANTSTREAM" "$@"
		exit 1
	fi
fi
exec "$GIANTSTREAM" "$@"
`

// unbuilt is a store on which a build in two partitions has begun, with what it must become.
type unbuilt struct {
	dir, config string
	want        map[string]string // SHA-256 by object
	stages      []stageOfPlan
	plan        []byte
}

type stageOfPlan struct {
	Name  string
	Tasks int
}

// newUnbuilt copies the store of a finished run, and builds the next generation of one copy in one process.
func newUnbuilt(t *testing.T) unbuilt {
	t.Helper()
	inputs, base := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), schedulersConfig)
	succeed(t, append([]string{"run", "--until-idle", "-c", config, "--store", base}, graph(t, inputs)...)...)
	whole := t.TempDir()
	copyDir(t, whole, base)
	succeed(t, "build", "-c", config, "--store", whole, "--partitions", "2")
	u := unbuilt{dir: base, config: config, want: artifacts(t, whole)}
	if len(u.want) < 8 {
		t.Fatalf("a generation of %d objects", len(u.want))
	}
	u.plan = succeed(t, "build", "plan", "-c", config, "--store", base, "--partitions", "2", "--json")
	var plan struct{ Stages []stageOfPlan }
	if err := json.Unmarshal(u.plan, &plan); err != nil {
		t.Fatal(err)
	}
	u.stages = plan.Stages
	return u
}

func copyDir(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// artifacts has the SHA-256 of all objects of generation 2 but its document, which has times.
func artifacts(t *testing.T, store string) map[string]string {
	t.Helper()
	out, root := map[string]string{}, os.DirFS(filepath.Join(store, "generations", "000002"))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == "generation.json" {
			return err
		}
		data, err := fs.ReadFile(root, path)
		sum := sha256.Sum256(data)
		out[path] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// workplace is a folder in which an example runs: pipeline.yaml, the store, the program on the path.
type workplace struct {
	dir string
	env []string
}

// workplace copies the store and puts fakes beside the program. They are this test's executable (fakes_test.go).
func (u unbuilt) workplace(t *testing.T, fakes ...string) workplace {
	t.Helper()
	w := workplace{dir: t.TempDir()}
	bin, store := filepath.Join(w.dir, "bin"), filepath.Join(w.dir, "store")
	copyDir(t, store, u.dir)
	writeFile(t, filepath.Join(w.dir, "pipeline.yaml"), "store: "+store+schedulersConfig)
	if err := os.Chmod(writeFile(t, filepath.Join(bin, "giantstream"), flaky), 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range fakes {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.env = append(os.Environ(), "GIANTSTREAM="+binary, "FLAKY="+w.dir, "ABSENT=", "STEADY=", fakeDir+"="+w.dir,
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1",
		"AIRFLOW_HOME="+filepath.Join(w.dir, "airflow"))
	return w
}

// run runs an example and returns what it printed. The error is of type *exec.ExitError if it failed.
func (w workplace) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.dir, w.env, 10*time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w workplace) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.run(t, args...)
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return out
}

func (w workplace) config() string { return filepath.Join(w.dir, "pipeline.yaml") }

// finished compares the generation with the one that one process built.
func (w workplace) finished(t *testing.T, want map[string]string) {
	t.Helper()
	got := artifacts(t, filepath.Join(w.dir, "store"))
	for object := range want {
		if got[object] != want[object] {
			t.Errorf("%s has the SHA-256 %q, want %q", object, got[object], want[object])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d objects, want %d", len(got), len(want))
	}
}

// attempts is how often each task was tried.
func (w workplace) attempts(t *testing.T) map[string]int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "attempts"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for line := range strings.Lines(string(data)) {
		out[strings.TrimSpace(line)]++
	}
	return out
}

// tried wants that every task was tried once, and tasks of the number failing twice.
func (w workplace) tried(t *testing.T, stages []stageOfPlan, failing int) {
	t.Helper()
	got := w.attempts(t)
	for _, s := range stages {
		for i := range s.Tasks {
			task, want := fmt.Sprintf("%s %d", s.Name, i), 1
			if i == failing {
				want = 2
			}
			if got[task] != want {
				t.Errorf("task %s was tried %d times, want %d", task, got[task], want)
			}
			delete(got, task)
		}
	}
	if len(got) > 0 {
		t.Errorf("tasks that the plan has not: %v", slices.Sorted(maps.Keys(got)))
	}
}

// tools skips the test if a program is missing.
func tools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed (docs/deploy/build/README.md)", name)
		}
	}
}

// schedulersPython is the Python that has the schedulers which are Python packages; the test is skipped if it has not
// all of the modules.
func schedulersPython(t *testing.T, modules string) string {
	t.Helper()
	python, err := exec.LookPath(cmp.Or(os.Getenv("GIANTSTREAM_SCHEDULERS"), "python3"))
	if err != nil {
		t.Skip("no Python; GIANTSTREAM_SCHEDULERS can name one")
	}
	// They are not imported: that takes seconds, and Airflow then writes into the home directory.
	find := "import importlib.util as u; assert all(map(u.find_spec, '" + modules + "'.split()))"
	if out, err := exec.CommandContext(t.Context(), python, "-c", find).CombinedOutput(); err != nil {
		t.Skipf("%s has not all of %s (docs/deploy/build/README.md): %v: %.200s", python, modules, err,
			bytes.TrimSpace(out))
	}
	return python
}

// Each example, with failures on the way, makes what one process makes, byte for byte.
func TestSchedulers(t *testing.T) {
	if testing.Short() {
		t.Skip("builds with real schedulers take a minute")
	}
	u := newUnbuilt(t)

	t.Run("shell", func(t *testing.T) {
		tools(t, "xargs", "seq", "paste")
		w := u.workplace(t)
		script := []string{"sh", filepath.Join(examples, "build.sh"), "4", "-c", w.config()}
		failures := 0
		for _, err := w.run(t, script...); err != nil; _, err = w.run(t, script...) {
			if failures++; failures > len(u.stages) {
				t.Fatalf("failed %d times: %v", failures, err)
			}
		}
		if failures == 0 {
			t.Error("no failure of a task was seen")
		}
		w.finished(t, u.want)
	})

	t.Run("slurm", func(t *testing.T) {
		tools(t, "jq")
		if _, err := exec.LookPath("slurmctld"); err != nil {
			w := u.workplace(t, "sbatch", "scontrol") // simulated
			w.mustRun(t, "sh", filepath.Join(examples, "slurm.sh"), "-c", w.config())
			w.finished(t, u.want)
			w.tried(t, u.stages, 1)
			return
		}
		tools(t, "slurmd", "sbatch", "squeue")
		w := u.workplace(t)
		startSlurm(t, &w)
		w.mustRun(t, "sh", filepath.Join(examples, "slurm.sh"), "-c", w.config())
		deadline := time.Now().Add(longest)
		for strings.TrimSpace(w.mustRun(t, "squeue", "--noheader")) != "" {
			if time.Now().After(deadline) {
				t.Fatalf("jobs do not end:\n%s", w.mustRun(t, "squeue"))
			}
			time.Sleep(200 * time.Millisecond)
		}
		w.finished(t, u.want)
		w.tried(t, u.stages, 1)
	})

	t.Run("kubernetes, simulated", func(t *testing.T) {
		tools(t, "jq")
		w := u.workplace(t, "kubectl")
		w.mustRun(t, "sh", filepath.Join(examples, "kubernetes.sh"), "example.org/giantstream:1", "3")
		w.finished(t, u.want)
		w.tried(t, u.stages, 1)
	})

	t.Run("argo, simulated", func(t *testing.T) {
		w := u.workplace(t)
		runArgo(t, w, u.plan)
		w.finished(t, u.want)
		w.tried(t, u.stages, 1)
	})

	t.Run("ray", func(t *testing.T) {
		python := schedulersPython(t, "ray")
		w := u.workplace(t)
		w.env = append(w.env, "RAY_USAGE_STATS_ENABLED=0", "RAY_TMPDIR="+w.dir)
		w.mustRun(t, python, filepath.Join(examples, "ray_build.py"), "-c", w.config())
		w.finished(t, u.want)
		w.tried(t, u.stages, 1)
	})

	t.Run("spark", func(t *testing.T) {
		tools(t, "java")
		python := schedulersPython(t, "pyspark")
		w := u.workplace(t)
		w.env = append(w.env, "PYSPARK_PYTHON="+python, "SPARK_LOCAL_IP=127.0.0.1")
		w.mustRun(t, filepath.Join(filepath.Dir(python), "spark-submit"), "--master", "local[2,4]",
			"--conf", "spark.ui.enabled=false", filepath.Join(examples, "spark_build.py"), "-c", w.config())
		w.finished(t, u.want)
		w.tried(t, u.stages, 1)
	})

	t.Run("airflow", func(t *testing.T) {
		python := schedulersPython(t, "airflow")
		airflow := filepath.Join(filepath.Dir(python), "airflow")
		w := u.workplace(t)
		w.env = append(w.env, "AIRFLOW__CORE__LOAD_EXAMPLES=False",
			"AIRFLOW__CORE__DAGS_FOLDER="+examples, "GIANTSTREAM_CONFIG="+w.config())
		w.mustRun(t, airflow, "db", "migrate")
		// This command does not try again what fails; a scheduler of Airflow does.
		w.env = append(w.env, "STEADY=1")
		w.mustRun(t, airflow, "dags", "test", "giantstream_build")
		w.finished(t, u.want)
		w.tried(t, u.stages, -1)
	})
}

// A task that does not exist ends a build: it is not tried again, and no later stage begins.
func TestSchedulersGiveUp(t *testing.T) {
	tools(t, "jq")
	u := newUnbuilt(t)
	for _, c := range []struct {
		name   string
		fakes  []string
		script []string
		parts  int
	}{
		{"slurm", []string{"sbatch", "scontrol"}, []string{"slurm.sh", "-c", "pipeline.yaml"}, 1},
		{"kubernetes", []string{"kubectl"}, []string{"kubernetes.sh", "example.org/giantstream:1", "1"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := u.workplace(t, c.fakes...)
			w.env = append(w.env, "ABSENT=resolve")
			out, err := w.run(t, append([]string{"sh", filepath.Join(examples, c.script[0])}, c.script[1:]...)...)
			if c.name == "kubernetes" && (err == nil || !strings.Contains(out, "resolve failed")) {
				t.Errorf("the script ends with %v and says\n%s", err, out)
			}
			got := w.attempts(t)
			if got["resolve 0"] != 1 || got["link 0"] != 0 || got["index 0"] == 0 {
				t.Errorf("attempts %v", got)
			}
		})
	}
}

// The manifests are what Kubernetes and Argo take, by their own schemas.
func TestManifests(t *testing.T) {
	python := schedulersPython(t, "kubernetes_validate hera yaml")
	tools(t, "jq")
	u := newUnbuilt(t)
	w := u.workplace(t, "kubectl")
	w.mustRun(t, "sh", filepath.Join(examples, "kubernetes.sh"), "example.org/giantstream:1", "3")
	jobs, err := filepath.Glob(filepath.Join(w.dir, "*.job.yaml"))
	if err != nil || len(jobs) != len(u.stages) {
		t.Fatalf("%d jobs, want %d: %v", len(jobs), len(u.stages), err)
	}
	check := []string{python, filepath.Join(here, "testdata", "manifests.py"), filepath.Join(examples, "argo.yaml")}
	if out := w.mustRun(t, append(check, jobs...)...); out != fmt.Sprintf("%d valid\n", len(jobs)+1) {
		t.Error(out)
	}
	// It would see a mistake.
	for name, mistake := range map[string][2]string{"argo.yaml": {"withSequence", "withSequences"},
		filepath.Base(jobs[0]): {"completionMode", "completionsMode"}} {
		from := filepath.Join(cmp.Or(map[bool]string{true: examples}[name == "argo.yaml"], w.dir), name)
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		wrong := writeFile(t, filepath.Join(t.TempDir(), name), strings.ReplaceAll(string(data), mistake[0], mistake[1]))
		if out, err := w.run(t, check[0], check[1], wrong); err == nil || !strings.Contains(out, mistake[1]) {
			t.Errorf("%s with %s: %v, %s", name, mistake[1], err, out)
		}
	}
}
