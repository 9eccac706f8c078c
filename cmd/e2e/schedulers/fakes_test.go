package schedulers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// fakeDir names the variable with the folder in which fakes keep what they know, and in which pipeline.yaml is what a
// pod sees as /etc/giantstream/pipeline.yaml.
const fakeDir = "GIANTSTREAM_FAKES"

// serveFake acts as the scheduler's program that this process was started as. It returns if there is none.
func serveFake() {
	fake := map[string]func(dir string, args []string) error{"kubectl": fakeKubectl, "sbatch": fakeSbatch,
		"scontrol": fakeScontrol}[filepath.Base(os.Args[0])]
	dir := os.Getenv(fakeDir)
	if fake == nil || dir == "" {
		return
	}
	if err := fake(dir, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// job is what the simulation knows of a Job of Kubernetes; other fields are mistakes.
type job struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		CompletionMode       string `yaml:"completionMode"`
		Completions          int
		Parallelism          int
		BackoffLimitPerIndex int `yaml:"backoffLimitPerIndex"`
		MaxFailedIndexes     int `yaml:"maxFailedIndexes"`
		PodFailurePolicy     struct {
			Rules []struct {
				Action      string
				OnExitCodes struct {
					ContainerName string `yaml:"containerName"`
					Operator      string
					Values        []int
				} `yaml:"onExitCodes"`
			}
		} `yaml:"podFailurePolicy"`
		Template struct {
			Spec struct {
				RestartPolicy string `yaml:"restartPolicy"`
				Containers    []container
				Volumes       []any
			}
		}
	}
}

type container struct {
	Name, Image  string
	Args         []string
	Env          []struct{ Name, Value string }
	Resources    any
	VolumeMounts []any `yaml:"volumeMounts"`
}

// start runs the image's program with the arguments of a container, and returns its exit code.
func (c container) start(dir string, env ...string) (int, error) {
	vars := map[string]string{}
	for _, e := range c.Env {
		vars[e.Name] = e.Value
	}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		vars[name] = value
	}
	args := make([]string, len(c.Args))
	for i, arg := range c.Args {
		for name, value := range vars { // as the kubelet does
			arg = strings.ReplaceAll(arg, "$("+name+")", value)
		}
		args[i] = strings.Replace(arg, "/etc/giantstream/", dir+"/", 1)
	}
	return exitCode(exec.Command("giantstream", args...))
}

func exitCode(cmd *exec.Cmd) (int, error) {
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// fakeKubectl knows Indexed Jobs, which it runs at once, and how they ended.
func fakeKubectl(dir string, args []string) error {
	status := func(job string) string { return filepath.Join(dir, job+".status") }
	switch command := strings.Join(args, " "); {
	case command == "apply -f -":
		data, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		var j job
		if err := yaml.UnmarshalWithOptions(data, &j, yaml.Strict()); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, j.Metadata.Name+".job.yaml"), data, 0o600); err != nil {
			return err
		}
		condition, err := j.run(dir)
		if err != nil {
			return err
		}
		return os.WriteFile(status(j.Metadata.Name), []byte(condition), 0o600)
	case strings.HasPrefix(command, "get job ") && strings.HasSuffix(command,
		` -o jsonpath={.status.conditions[?(@.status=="True")].type}`):
		data, err := os.ReadFile(status(args[2]))
		if err == nil {
			_, err = os.Stdout.Write(data)
		}
		return err
	case strings.HasPrefix(command, "delete job ") && strings.HasSuffix(command, " --ignore-not-found"):
		if err := os.Remove(status(args[2])); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	return fmt.Errorf("this fake does not know %q", args)
}

func (j *job) run(dir string) (condition string, err error) {
	s := j.Spec
	if j.Kind != "Job" || s.CompletionMode != "Indexed" || s.Template.Spec.RestartPolicy != "Never" ||
		s.Completions < 1 || s.Parallelism < 1 || len(s.Template.Spec.Containers) != 1 {
		return "", fmt.Errorf("not an Indexed Job: %+v", j)
	}
	for index := range s.Completions {
		for failures := 0; ; failures++ {
			code, err := s.Template.Spec.Containers[0].start(dir, "JOB_COMPLETION_INDEX="+strconv.Itoa(index))
			if err != nil {
				return "", err
			}
			if code == 0 {
				break
			}
			for _, r := range s.PodFailurePolicy.Rules {
				if r.Action == "FailJob" && slices.Contains(r.OnExitCodes.Values, code) {
					return "FailureTarget Failed", nil
				}
			}
			if failures == s.BackoffLimitPerIndex {
				return "FailureTarget Failed", nil // with maxFailedIndexes 0
			}
		}
	}
	return "SuccessCriteriaMet Complete", nil
}

// fakeScontrol says that arrays have two elements at most.
func fakeScontrol(_ string, args []string) error {
	if !slices.Equal(args, []string{"show", "config"}) {
		return fmt.Errorf("this fake does not know %q", args)
	}
	fmt.Println("MaxArraySize            = 2")
	return nil
}

// fakeSbatch runs an array at once, unless a job that it depends on has failed.
func fakeSbatch(dir string, args []string) error {
	options := map[string]string{}
	for len(args) > 0 && strings.HasPrefix(args[0], "--") {
		name, value, _ := strings.Cut(args[0], "=")
		options[name], args = value, args[1:]
	}
	known := []string{"--array", "--cpus-per-task", "--dependency", "--job-name", "--kill-on-invalid-dep", "--mem",
		"--parsable", "--requeue"}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("this fake does not know %s", name)
		}
	}
	span := regexp.MustCompile(`^0-(\d+)$`).FindStringSubmatch(options["--array"])
	if span == nil || len(args) == 0 {
		return fmt.Errorf("no array of a script: %q", os.Args)
	}
	last, err := strconv.Atoi(span[1])
	if err != nil || last > 1 {
		return fmt.Errorf("an array up to %d: %w", last, err)
	}
	jobs, err := filepath.Glob(filepath.Join(dir, "slurm-*.status"))
	if err != nil {
		return err
	}
	id := len(jobs) + 1
	status := func(id string) string { return filepath.Join(dir, "slurm-"+id+".status") }
	outcome := "COMPLETED"
	if after, ok := strings.CutPrefix(options["--dependency"], "afterok:"); ok {
		data, err := os.ReadFile(status(after))
		if err != nil {
			return err
		}
		if string(data) != outcome {
			outcome = "CANCELLED"
		}
	}
	for i := 0; i <= last && outcome == "COMPLETED"; i++ {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		cmd := exec.CommandContext(ctx, "sh", args...)
		cmd.Env = append(os.Environ(), "SLURM_ARRAY_TASK_ID="+strconv.Itoa(i))
		code, err := exitCode(cmd)
		cancel()
		if err != nil {
			return err
		}
		if code != 0 {
			outcome = "FAILED"
		}
	}
	fmt.Println(id)
	return os.WriteFile(status(strconv.Itoa(id)), []byte(outcome), 0o600)
}
