package schedulers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"giantstream/internal/freeport"
)

// workflow is what the simulation knows of a workflow of Argo; other fields are mistakes.
type workflow struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		GenerateName string `yaml:"generateName"`
	}
	Spec struct {
		Entrypoint  string
		Parallelism int
		Arguments   parameters
		Volumes     []any
		Templates   []template
	}
}

type parameters struct {
	Parameters []struct{ Name, Value string }
}

type template struct {
	Name          string
	Parallelism   int
	Inputs        parameters
	RetryStrategy *struct {
		Limit      int
		Expression string
	} `yaml:"retryStrategy"`
	Steps [][]struct {
		Name, Template string
		Arguments      parameters
		WithParam      string                 `yaml:"withParam"`
		WithSequence   struct{ Count string } `yaml:"withSequence"`
	}
	Container *container
}

// runArgo does what the controller of Argo does with argo.yaml, one pod at a time.
func runArgo(t *testing.T, w workplace, plan []byte) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(examples, "argo.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var wf workflow
	if err := yaml.UnmarshalWithOptions(data, &wf, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	var p struct {
		Generation int
		Stages     json.RawMessage
	}
	if err := json.Unmarshal(plan, &p); err != nil {
		t.Fatal(err)
	}
	a := argo{t: t, place: w, templates: map[string]template{}}
	for _, tmpl := range wf.Spec.Templates {
		a.templates[tmpl.Name] = tmpl
	}
	a.run(wf.Spec.Entrypoint, map[string]string{
		"workflow.parameters.generation": strconv.Itoa(p.Generation), "workflow.parameters.stages": string(p.Stages)})
}

type argo struct {
	t         *testing.T
	place     workplace
	templates map[string]template
}

// fill puts values in the place of {{names}}; none may be left.
func (a argo) fill(s string, values map[string]string) string {
	for name, value := range values {
		s = strings.ReplaceAll(s, "{{"+name+"}}", value)
	}
	if strings.Contains(s, "{{") {
		a.t.Fatalf("%q has a parameter that nobody set", s)
	}
	return s
}

func (a argo) run(name string, values map[string]string) {
	a.t.Helper()
	tmpl, ok := a.templates[name]
	switch {
	case !ok:
		a.t.Fatalf("no template %q", name)
	case tmpl.Container != nil:
		a.pod(tmpl, values)
		return
	}
	for _, group := range tmpl.Steps {
		for _, step := range group {
			for _, item := range a.items(step.WithParam, step.WithSequence.Count, values) {
				inner := map[string]string{}
				for name, value := range values {
					if strings.HasPrefix(name, "workflow.") {
						inner[name] = value
					}
					item[name] = value
				}
				for _, p := range step.Arguments.Parameters {
					inner["inputs.parameters."+p.Name] = a.fill(p.Value, item)
				}
				a.run(step.Template, inner)
			}
		}
	}
}

// items are the values of a loop: of each, {{item}} or {{item.field}}.
func (a argo) items(param, count string, values map[string]string) (items []map[string]string) {
	a.t.Helper()
	if param == "" {
		n, err := strconv.Atoi(a.fill(count, values))
		if err != nil {
			a.t.Fatal(err)
		}
		for i := range n {
			items = append(items, map[string]string{"item": strconv.Itoa(i)})
		}
		return items
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(a.fill(param, values)), &list); err != nil {
		a.t.Fatal(err)
	}
	for _, fields := range list {
		item := map[string]string{}
		for name, value := range fields {
			item["item."+name] = fmt.Sprint(value)
		}
		items = append(items, item)
	}
	return items
}

func (a argo) pod(tmpl template, values map[string]string) {
	a.t.Helper()
	const notAMistake = "asInt(lastRetry.exitCode) != 2"
	if tmpl.RetryStrategy == nil || tmpl.RetryStrategy.Expression != notAMistake {
		a.t.Fatalf("%+v: this simulation evaluates %q only", tmpl.RetryStrategy, notAMistake)
	}
	args := []string{"giantstream"}
	for _, arg := range tmpl.Container.Args {
		args = append(args, strings.Replace(a.fill(arg, values), "/etc/giantstream/", a.place.dir+"/", 1))
	}
	// The shell finds the program on the path of the workplace.
	shell := append([]string{"sh", "-c", `exec "$@"`, "sh"}, args...)
	for tries := 0; ; tries++ {
		out, err := a.place.run(a.t, shell...)
		if err == nil {
			return
		}
		exit := new(exec.ExitError)
		if tries == tmpl.RetryStrategy.Limit || !errors.As(err, &exit) || exit.ExitCode() == 2 {
			a.t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
}

// startSlurm starts a Slurm of one machine, which the environment of w names from then on.
func startSlurm(t *testing.T, w *workplace) {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	port := func() string {
		addr, err := freeport.Addr(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return addr[strings.LastIndex(addr, ":")+1:]
	}
	dir := t.TempDir()
	for _, name := range []string{"state", "spool"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Arrays of two elements at most, so that one does several tasks. Nobody else is on loopback: no authentication.
	conf := writeFile(t, filepath.Join(dir, "slurm.conf"), strings.NewReplacer("DIR", dir, "USER", me.Username,
		"PORT1", port(), "PORT2", port()).Replace(`
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=PORT1
SlurmdPort=PORT2
SlurmUser=USER
SlurmdUser=USER
AuthType=auth/none
CredType=cred/none
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool
SlurmctldPidFile=DIR/ctld.pid
SlurmdPidFile=DIR/d.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
MaxArraySize=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
NodeName=localhost NodeAddr=127.0.0.1 CPUs=4 RealMemory=8000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`))
	w.env = append(w.env, "SLURM_CONF="+conf)
	for _, args := range [][]string{{"slurmctld", "-D"}, {"slurmd", "-D", "-N", "localhost"}} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		var log bytes.Buffer
		cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.env, dir, &log, &log
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 10 * time.Second
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait() // it was interrupted
			if t.Failed() {
				t.Logf("%s:\n%s", args[0], log.String())
			}
		})
	}
	for deadline := time.Now().Add(longest); ; time.Sleep(200 * time.Millisecond) {
		out, err := w.run(t, "sinfo", "--noheader", "--format=%t")
		if err == nil && strings.TrimSpace(out) == "idle" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Slurm does not get ready: %v, %s", err, out)
		}
	}
}
