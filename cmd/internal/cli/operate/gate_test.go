package operate

import (
	"bytes"
	"strings"
	"testing"

	"giantstream/cmd/internal/status"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
)

func worse(g, parent int64, status generation.Status, gate generation.Gate) *generation.Doc {
	return &generation.Doc{Generation: g, Parent: parent, Status: status, QualityGate: gate,
		Encoder:    generation.EncoderStats{Kind: "bag"},
		Shortfalls: []fit.Shortfall{{Figure: "class, 10 % labelled", Text: 0.74, Encoder: 0.67, StdErr: 0.01}}}
}

func TestStatusWarnsOfWhatIsInForce(t *testing.T) {
	good := &generation.Doc{Generation: 1, Status: generation.Ready}
	for _, c := range []struct {
		name string
		docs []*generation.Doc
		want []string // in what is printed, in this order
		not  string
	}{
		{"nothing to warn of", []*generation.Doc{good}, nil, "WARNING"},
		{"served all the same", []*generation.Doc{good, worse(2, 1, generation.Ready, generation.GateWarn)},
			[]string{"WARNING: generation 2 is served although the encoder bag is worse than text alone in " +
				"class, 10 % labelled 0.670 (text alone 0.740)"}, "refused"},
		{"refused", []*generation.Doc{good, worse(2, 1, generation.Refused, generation.GateBlock)},
			[]string{"WARNING: generation 2 was refused by refresh.quality_gate, and generation 1 keeps serving"}, "although"},
		{"refused after one that is as bad", []*generation.Doc{worse(1, 0, generation.Ready, generation.GateBlock),
			worse(2, 1, generation.Refused, generation.GateBlock)}, []string{"generation 2 was refused",
			"generation 1 is served, since there is none before it, although"}, "generation 3"},
		{"a good one since", []*generation.Doc{worse(1, 0, generation.Ready, ""), {Generation: 2, Status: generation.Ready}},
			nil, "WARNING"},
		{"gate off", []*generation.Doc{worse(1, 0, generation.Ready, generation.GateOff)}, nil, "WARNING"},
	} {
		st := &status.Status{Identity: commitlog.Identity{Name: "test"}}
		for _, d := range c.docs {
			st.Generations = append(st.Generations, status.Generation{Generation: d.Generation, Status: d.Status,
				Warning: status.GateWarning(d)})
			if d.Status == generation.Ready {
				st.Served = d.Generation
			}
		}
		var out bytes.Buffer
		if err := printStatus(&out, st); err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, want := range c.want {
			k := strings.Index(out.String()[at:], want)
			if k < 0 {
				t.Fatalf("%s: no %q in\n%s", c.name, want, out.String())
			}
			at += k
		}
		if strings.Contains(out.String(), c.not) {
			t.Errorf("%s: %q in\n%s", c.name, c.not, out.String())
		}
	}
}
