package study

import (
	"bytes"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestCompareMeasuresTheColdStart(t *testing.T) {
	o := options(t)
	o.HoldoutNodes, o.Settings.ProbeRates = 0.2, []float64{0.5}
	encoders := []string{"lsa", "linear"}
	rows := graphOf(400)
	for i := range rows[:50] { // a node in eight has no edge
		rows[7*i].Labels = nil
	}
	for i := range rows {
		rows[i].Class = fmt.Sprint("topic ", i%8)
		kept := rows[i].Labels[:0:0]
		for _, id := range rows[i].Labels {
			for _, r := range rows {
				if r.NodeID == id && len(r.Labels) > 0 {
					kept = append(kept, id)
				}
			}
		}
		rows[i].Labels = kept
	}
	var log bytes.Buffer
	o.Resources.Log = slog.New(slog.NewTextHandler(&log, nil))
	got, err := Compare(t.Context(), o, rows, encoders, []uint64{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, line := range regexp.MustCompile(`msg="(\w+)[^"]* measured".* encoder=(\w+) seed=(\d) `).
		FindAllStringSubmatch(log.String(), -1) {
		said = append(said, strings.Join(line[1:], " "))
	}
	if want := []string{"row lsa 1", "row linear 1", "unseen lsa 1", "unseen linear 1",
		"row lsa 2", "row linear 2", "unseen lsa 2", "unseen linear 2"}; !slices.Equal(said, want) {
		t.Errorf("the log has %q, want the figures as they come: %q", said, want)
	}
	for _, c := range got {
		for _, e := range c.Runs {
			u := e.Unseen
			if u == nil || u.Nodes < 50 || u.Links == nil || u.Links.AUC < 0.7 || u.Classes == nil || u.Classes.Accuracy < 0.7 {
				t.Errorf("%s: unseen nodes %+v", c.Encoder, u)
			}
			if e.Isolated == nil || e.Isolated.Nodes < 50 || e.Isolated.Accuracy < 0.7 {
				t.Errorf("%s: isolated nodes %+v", c.Encoder, e.Isolated)
			}
			labelled := 0
			for _, b := range e.ByDegree {
				labelled += b.Labelled
				if (b.Labelled >= 30) != (len(b.Classes) > 0) {
					t.Errorf("%s, degree %s: %d nodes, classes %v", c.Encoder, b.Degree, b.Labelled, b.Classes)
				}
				if (b.Edges >= 30) != (b.Links != nil) {
					t.Errorf("%s, degree %s: %d edges, links %v", c.Encoder, b.Degree, b.Edges, b.Links)
				}
			}
			if labelled != 400 {
				t.Errorf("%s: %d nodes in buckets, want 400", c.Encoder, labelled)
			}
		}
	}
	o.Resources.Workers = 3
	again, err := Compare(t.Context(), o, rows, encoders, []uint64{1, 2})
	if err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("other figures with other workers (%v)", err)
	}

	o.HoldoutNodes = 0
	without, err := Compare(t.Context(), o, rows, encoders, []uint64{1})
	if err != nil {
		t.Fatal(err)
	}
	if e := without[1].Runs[0]; e.Unseen != nil || !reflect.DeepEqual(e.Links, got[1].Runs[0].Links) {
		t.Errorf("without hidden nodes: %+v, want the same links and no unseen nodes", e)
	}
}
