package plan_test

import (
	"errors"
	"path/filepath"
	"testing"

	"giantstream/cmd/internal/plan"
	"giantstream/train/generation/staged"
)

func papers() plan.Input {
	return plan.Input{Nodes: 111e6, Edges: 1600e6, TextBytes: 111e9, Workers: 16, Cores: 8, Memory: 16 << 30,
		Bandwidth: 1.25e9, Dim: 256, ProjectionDim: 512, Shards: 16, Prices: plan.Prices{CoreHour: 0.05, GBMonth: 0.023}}
}

// rates are the same for all stages, since the tests ask how costs grow, not how large they are.
func rates() plan.Rates {
	out := plan.Rates{}
	division, err := staged.NewPlan(1, 1, staged.Size{Rows: 1}, 0, 0)
	if err != nil {
		panic(err)
	}
	for _, s := range division.Stages() {
		out[s.Name] = plan.Rate{CoreSeconds: 1e-6, ReadBytes: 2, WrittenBytes: 1, Parallel: 0.8}
	}
	return out
}

func of(t *testing.T, in plan.Input) *plan.Plan {
	t.Helper()
	p, err := plan.Of(in, rates())
	if err != nil {
		t.Fatal(err)
	}
	return p
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
			last = got
		}
	}
}

func TestTasksFitTheMemory(t *testing.T) {
	for _, gib := range []int64{2, 4, 16, 64} {
		in := papers()
		in.Memory = gib << 30
		p, err := plan.Of(in, rates())
		if errors.Is(err, plan.ErrTooSmall) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Stages {
			if s.Memory > in.Memory {
				t.Errorf("a task of %s takes %d MiB of %d GiB", s.Name, s.Memory>>20, gib)
			}
		}
	}
	in := papers()
	in.Memory = 256 << 20
	if _, err := plan.Of(in, rates()); !errors.Is(err, plan.ErrTooSmall) {
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
	if a.CoreSeconds != b.CoreSeconds || a.WrittenBytes != b.WrittenBytes {
		t.Error("the work depends on the machines")
	}
	// Each reads the tree, 4 bytes a node.
	if more := b.ReadBytes - a.ReadBytes; more != 4*many.Nodes*int64(many.Workers-one.Workers) {
		t.Errorf("%d machines read %d bytes more than one", many.Workers, more)
	}
}

func TestFaultsOfAnInputAreNamed(t *testing.T) {
	in := papers()
	in.Workers, in.Edges = 0, -1
	if _, err := plan.Of(in, rates()); err == nil {
		t.Error("no machine and less than no edge are accepted")
	}
}

func TestACalibrationIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rates.json")
	want := plan.Calibration{Machine: "2 cores", Nodes: 60000, Rates: rates()}
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := plan.Load(path)
	if err != nil || got.Machine != want.Machine || len(got.Rates) != len(want.Rates) {
		t.Errorf("%+v, %v", got, err)
	}
	bad := want
	bad.Rates = plan.Rates{"pifa": {CoreSeconds: -1}}
	if err := bad.Save(path); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Load(path); err == nil {
		t.Error("a negative rate is accepted")
	}
}
