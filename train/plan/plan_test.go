package plan_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"giantstream/config"
	"giantstream/train/generation/build/stages"
	"giantstream/train/plan"
)

func papers() plan.Input {
	return plan.Input{Nodes: 111e6, Edges: 1600e6, TextBytes: 111e9, Workers: 16, Cores: 8, Memory: 16 << 30,
		Bandwidth: 1.25e9, Shards: 16, Prices: plan.Prices{CoreHour: 0.05, GBMonth: 0.023}}
}

// calibration has one rate for all terms, since the tests ask how costs grow, not how large they are.
func calibration() plan.Calibration {
	c := plan.Calibration{Format: plan.Format, Machine: "2 cores", Graph: plan.Graph{Classes: 10},
		Encoder: "linear", Dim: 256, ProjectionDim: 512,
		Growth: plan.Growth{Exponent: 0.8, Candidates: 0.01}, Stages: map[string]plan.Rates{}}
	for name, s := range plan.Shapes {
		r := plan.Rates{CoreSeconds: plan.Rate{}, ReadBytes: plan.Rate{}, WrittenBytes: plan.Rate{}, Shuffled: 0.5,
			ModelBytes: 1e6, Parallel: 0.8}
		for _, t := range s.CPU {
			r.CoreSeconds[t] = 1e-6
		}
		for _, t := range s.Read {
			r.ReadBytes[t] = 2
		}
		for _, t := range s.Written {
			r.WrittenBytes[t] = 1
		}
		c.Stages[name] = r
	}
	return c
}

func of(t *testing.T, in plan.Input) *plan.Plan {
	t.Helper()
	p, err := plan.Estimate(in, calibration())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEveryStageIsPlannedOrNamed: of a build with all that is optional, each stage can be estimated, or else is named
// as one that a plan leaves out; and no shape is of a stage that is gone.
func TestEveryStageIsPlannedOrNamed(t *testing.T) {
	every := stages.Plan{Spread: true, Features: "text", Fill: true, Parent: true, Orders: true, Behaviour: true,
		GoesWith: true, Weighted: true, Vectors: true, Partitions: 2, Ranges: 1}
	known := map[string]int{}
	for name := range plan.Shapes {
		known[name]++
	}
	for _, u := range plan.Unplanned {
		for _, name := range u.Stages {
			known[name]++
		}
	}
	for _, s := range every.Stages() {
		if known[s.Name] != 1 {
			t.Errorf("%s is planned or left out %d times", s.Name, known[s.Name])
		}
		delete(known, s.Name)
	}
	if len(known) > 0 {
		t.Errorf("no stages: %v", known)
	}
}

// TestMoreGraphCostsMore: in nodes, with edges and texts that grow with them, and in edges and texts alone.
func TestMoreGraphCostsMore(t *testing.T) {
	for what, grow := range map[string]func(*plan.Input, int64){
		"nodes": func(in *plan.Input, k int64) { in.Nodes, in.Edges, in.TextBytes = k*1e5, k*1e6, k*1e8 },
		"edges": func(in *plan.Input, k int64) { in.Nodes, in.Edges, in.TextBytes = 1e6, k*1e6, 1e9 },
		"texts": func(in *plan.Input, k int64) { in.Nodes, in.Edges, in.TextBytes = 1e6, 1e7, k*1e8 },
	} {
		last := plan.Stage{}
		for k := int64(1); k <= 1024; k *= 2 {
			in := papers()
			grow(&in, k)
			got := of(t, in).Total
			if got.CoreSeconds <= last.CoreSeconds || got.ReadBytes <= last.ReadBytes || got.WrittenBytes <= last.WrittenBytes {
				t.Errorf("%s × %d: %+v after %+v", what, k, got, last)
			}
			if got.ShuffledBytes > got.ReadBytes {
				t.Errorf("%s × %d: %d bytes read, %d of them shuffled", what, k, got.ReadBytes, got.ShuffledBytes)
			}
			last = got
		}
	}
}

// TestOptionalStagesCostMore: each of the three, and all.
func TestOptionalStagesCostMore(t *testing.T) {
	plain := of(t, papers())
	all := papers()
	for name, set := range map[string]func(*plan.Input){
		stages.Features: func(in *plan.Input) { in.Features = true },
		stages.Fill:     func(in *plan.Input) { in.Fill = true },
		stages.Compare:  func(in *plan.Input) { in.Refresh = true },
	} {
		in := papers()
		set(&in)
		set(&all)
		got := of(t, in)
		if got.Total.CoreSeconds <= plain.Total.CoreSeconds {
			t.Errorf("with %s: %.0f s of a processor, %.0f without", name, got.Total.CoreSeconds, plain.Total.CoreSeconds)
		}
		cost := 0.0
		for _, s := range got.Stages {
			if s.Name == name {
				cost = s.CoreSeconds
			}
		}
		if cost == 0 {
			t.Errorf("%s costs nothing", name)
		}
	}
	if got := len(of(t, all).Stages); got != len(plan.Shapes) {
		t.Errorf("%d stages with all options, %d shapes", got, len(plan.Shapes))
	}
}

// TestClassesCostMore, and rates of a graph without any are no rates of one with some.
func TestClassesCostMore(t *testing.T) {
	with := papers()
	with.Classes = 40
	if a, b := of(t, papers()).Total, of(t, with).Total; b.CoreSeconds <= a.CoreSeconds {
		t.Errorf("%.0f s of a processor with classes, %.0f without", b.CoreSeconds, a.CoreSeconds)
	}
	c := calibration()
	c.Graph.Classes = 0
	if _, err := plan.Estimate(with, c); err == nil || !strings.Contains(err.Error(), "without classes") {
		t.Errorf("classes by rates without: %v", err)
	}
}

func TestTasksFitTheMemory(t *testing.T) {
	for _, gib := range []int64{2, 4, 16, 64} {
		in := papers()
		in.Memory = gib << 30
		p, err := plan.Estimate(in, calibration())
		if errors.Is(err, plan.ErrTooSmall) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Stages {
			if s.Machine > in.Memory || s.Memory > s.Machine {
				t.Errorf("a task of %s takes %d MiB, those of a machine %d MiB of %d GiB", s.Name, s.Memory>>20,
					s.Machine>>20, gib)
			}
		}
	}
	in := papers()
	in.Memory = 256 << 20
	if _, err := plan.Estimate(in, calibration()); !errors.Is(err, plan.ErrTooSmall) {
		t.Errorf("256 MiB: %v", err)
	}
}

// TestMoreMachinesAreFasterAndWait: some of them have nothing to do at times. What is stored costs less meanwhile.
func TestMoreMachinesAreFasterAndWait(t *testing.T) {
	one, many := papers(), papers()
	one.Workers = 1
	one.Prices.GBMonth, many.Prices.GBMonth = 0, 0
	a, b := of(t, one).Total, of(t, many).Total
	if b.Seconds >= a.Seconds || b.Money < a.Money*(1-1e-9) {
		t.Errorf("one machine: %.0f s, %.2f; sixteen: %.0f s, %.2f", a.Seconds, a.Money, b.Seconds, b.Money)
	}
	if a.WrittenBytes != b.WrittenBytes || a.ReadBytes >= b.ReadBytes {
		t.Errorf("one machine reads %d and writes %d bytes, sixteen, which read models each, %d and %d", a.ReadBytes,
			a.WrittenBytes, b.ReadBytes, b.WrittenBytes)
	}
}

// TestMoreMemoryIsNotSlower: tasks beside each other are chosen only where they are faster. The division of the graph
// follows the memory, too, which may cost a little.
func TestMoreMemoryIsNotSlower(t *testing.T) {
	last := of(t, papers()).Total.Seconds
	for _, gib := range []int64{32, 64, 128, 256} {
		in := papers()
		in.Memory = gib << 30
		if got := of(t, in).Total.Seconds; got > 1.02*last {
			t.Errorf("%.0f s with %d GiB, %.0f with less", got, gib, last)
		} else {
			last = got
		}
	}
}

func TestFaultsOfAnInputAreNamed(t *testing.T) {
	in := papers()
	in.Workers, in.Edges = 0, -1
	_, err := plan.Estimate(in, calibration())
	if err == nil || !strings.Contains(err.Error(), "workers") || !strings.Contains(err.Error(), "edges") {
		t.Errorf("no machine and less than no edge: %v", err)
	}
	for _, spoil := range []func(*plan.Input){func(in *plan.Input) { in.Nodes = 1e12 + 1 },
		func(in *plan.Input) { in.Edges = math.MaxInt64 }, func(in *plan.Input) { in.TextBytes = math.MaxInt64 }} {
		in := papers()
		spoil(&in)
		if _, err := plan.Estimate(in, calibration()); err == nil || !strings.Contains(err.Error(), "at most") {
			t.Errorf("%d nodes, %d edges, %d bytes: %v", in.Nodes, in.Edges, in.TextBytes, err)
		}
	}
}

// TestOnlyRatesOfThisProgramAreAccepted: others would leave a stage out, or cost nothing.
func TestOnlyRatesOfThisProgramAreAccepted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rates.json")
	want := calibration()
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := plan.Load(path)
	if err != nil || got.Machine != want.Machine || len(got.Stages) != len(want.Stages) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, spoil := range map[string]func(*plan.Calibration){
		"another format":  func(c *plan.Calibration) { c.Format-- },
		"no rates":        func(c *plan.Calibration) { c.Stages = nil },
		"a stage less":    func(c *plan.Calibration) { delete(c.Stages, stages.Compare) },
		"a stage more":    func(c *plan.Calibration) { c.Stages["polish"] = c.Stages[stages.Compare] },
		"an unknown term": func(c *plan.Calibration) { c.Stages[stages.PIFA].CoreSeconds["moon"] = 1 },
		"a negative rate": func(c *plan.Calibration) {
			c.Stages[stages.PIFA].ReadBytes[plan.Shapes[stages.PIFA].Read[0]] = -1
		},
		"a share above 1": func(c *plan.Calibration) {
			r := c.Stages[stages.PIFA]
			r.Parallel = 2
			c.Stages[stages.PIFA] = r
		},
		"no dimension":     func(c *plan.Calibration) { c.Dim = 0 },
		"negative n-grams": func(c *plan.Calibration) { c.Growth.Candidates = -1 },
	} {
		bad := calibration()
		spoil(&bad)
		if err := bad.Save(path); err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Load(path); !errors.Is(err, plan.ErrRates) {
			t.Errorf("%s: %v", name, err)
		}
	}
	old, err := json.Marshal(map[string]any{"rates": map[string]any{"pifa": map[string]any{"core_seconds": 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Load(path); !errors.Is(err, plan.ErrRates) {
		t.Errorf("rates of an older program: %v", err)
	}
}

// TestShippedRates of each encoder are read, and plan a graph of any size, of which every stage costs something.
func TestShippedRates(t *testing.T) {
	for _, encoder := range []string{config.Default().Train.Encoder, "linear"} {
		c, err := plan.Shipped(encoder)
		if err != nil {
			t.Fatal(err)
		}
		if c.Encoder != encoder || c.Machine == "" || c.When.IsZero() || c.Graph.Nodes < plan.LeastNodes ||
			c.Dim != config.Default().Embedding.Dim || c.ProjectionDim != config.Default().Featurize.ProjectionDim {
			t.Errorf("rates of %s, of %+v", encoder, c)
		}
		for nodes := int64(1); nodes < 1e9; nodes *= 10 {
			in := plan.Input{Nodes: nodes, Edges: 5 * nodes, TextBytes: 500 * nodes, Workers: 1, Cores: 8,
				Memory: 64 << 30, Bandwidth: 1 << 30, Shards: 1, Features: true, Fill: true, Refresh: true}
			p, err := plan.Estimate(in, c)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range p.Stages {
				if !(s.CoreSeconds > 0 && s.Seconds > 0) || s.ReadBytes < 0 || s.WrittenBytes < 0 {
					t.Errorf("%s, %d nodes: %+v", encoder, nodes, s)
				}
			}
		}
		if p, err := plan.Estimate(papers(), c); err != nil || !p.Spread {
			t.Errorf("%s: spread %t, %v", encoder, p != nil && p.Spread, err)
		}
	}
	if _, err := plan.Shipped("bert"); err == nil || !strings.Contains(err.Error(), "linear") {
		t.Errorf("bert: %v", err)
	}
}
