package heads

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRateTakesTheSameShareOfEveryClass(t *testing.T) {
	var classes []string
	for i := range 100 {
		switch {
		case i < 60:
			classes = append(classes, "a")
		case i < 90:
			classes = append(classes, "b")
		case i < 92:
			classes = append(classes, "rare")
		default:
			classes = append(classes, "")
		}
	}
	s, err := ByRate(classes, 0.1, 0.2, 7)
	if err != nil {
		t.Fatal(err)
	}
	count := func(nodes []int32) string {
		n := map[string]int{}
		for _, i := range nodes {
			n[classes[i]]++
		}
		return fmt.Sprint(n)
	}
	for _, c := range []struct {
		part  string
		nodes []int32
		want  string
	}{
		{"train", s.Train, "map[a:6 b:3 rare:1]"},
		{"validation", s.Validation, "map[a:12 b:6]"},
		{"test", s.Test, "map[a:42 b:21 rare:1]"},
	} {
		if got := count(c.nodes); got != c.want {
			t.Errorf("%s has the classes %s, want %s", c.part, got, c.want)
		}
	}
	if err := s.check(classes); err != nil {
		t.Error(err)
	}
	if again, _ := ByRate(classes, 0.1, 0.2, 7); !reflect.DeepEqual(s, again) {
		t.Error("the same seed gives another split")
	}
	if other, _ := ByRate(classes, 0.1, 0.2, 8); reflect.DeepEqual(s, other) {
		t.Error("another seed gives the same split")
	}
}

func TestTimeTestsOnTheLatest(t *testing.T) {
	at := func(days ...int) (out []time.Time) {
		for _, d := range days {
			out = append(out, time.Unix(0, 0).AddDate(0, 0, d))
		}
		return out
	}
	s, err := ByTime([]string{"x", "y", "", "x", "y", "x"}, at(5, 1, 0, 4, 2, 3), 0.4, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Split{Train: []int32{1, 4}, Validation: []int32{5}, Test: []int32{0, 3}}); !reflect.DeepEqual(s, want) {
		t.Errorf("split %v, want %v", s, want)
	}
}

func TestSplitsWithoutUseAreRefused(t *testing.T) {
	classes := []string{"a", "b", ""}
	for _, c := range []struct {
		name              string
		train, validation float64
	}{{"nothing to train on", 0, 0.5}, {"no test", 0.5, 0.5}, {"negative", 0.5, -0.1}} {
		if _, err := ByRate(classes, c.train, c.validation, 1); err == nil {
			t.Errorf("%s: accepted", c.name)
		}
	}
	if _, err := ByRate([]string{"", ""}, 0.5, 0, 1); !errors.Is(err, ErrSplit) {
		t.Errorf("no classes: got %v", err)
	}
	for _, s := range []Split{
		{Train: []int32{0}, Test: []int32{3}}, {Train: []int32{0}, Test: []int32{2}}, {Train: []int32{0},
			Test: []int32{0}}, {Train: []int32{0}},
	} {
		if s.check(classes) == nil {
			t.Errorf("split %v: accepted", s)
		}
	}
}

var splitIDs, splitClasses = []string{"a", "b", "c,d", "none"}, []string{"x", "y", "x", ""}

func TestSplitFiles(t *testing.T) {
	want := Split{Train: []int32{0}, Validation: []int32{2}, Test: []int32{1}}
	for name, file := range map[string]string{
		"csv":             "a,train\n\"c,d\",valid\nb,test\nnone,test\nstranger,train\n",
		"csv with header": "split,id\ntrain,a\nvalidation,\"c,d\"\ntest,b\ntest,none\ntrain,stranger\n",
		"JSON lines": `{"id":"a","split":"train"}` + "\n" +
			"\n" +
			`{"id":"c,d","split":"val"}` + "\n" +
			`{"id":"b","split":"test"}` + "\n" +
			`{"id":"none","split":"test"}` + "\n" +
			`{"id":"","split":"train"}`,
		"JSON, other case": `{"id":"a","split":"TRAIN"}` + "\n" +
			`{"id":"c,d","split":"Valid"}` + "\n" +
			`{"id":"b","split":"Test"}` + "\n" +
			`{"id":"none","split":"test"}` + "\n" +
			`{"id":"?","split":"train"}`,
	} {
		s, skipped, err := ReadSplit(strings.NewReader(file), splitIDs, splitClasses)
		if err != nil || !reflect.DeepEqual(s, want) || skipped != 2 {
			t.Errorf("%s: split %v, %d skipped, %v; want %v, 2 skipped", name, s, skipped, err, want)
		}
	}
	for name, file := range map[string]string{
		"empty": " \n", "unknown part": "a,train\nb,tset\n", "one column": "a\n", "twice": "a,train\na,test\n",
		"no JSON": "{\"id\"", "part missing": "{\"id\":\"a\"}\n", "open quote": "\"a,train\n",
	} {
		if _, _, err := ReadSplit(strings.NewReader(file), splitIDs, splitClasses); !errors.Is(err, ErrSplitFile) {
			t.Errorf("%s: got %v, want %v", name, err, ErrSplitFile)
		}
	}
	if _, _, err := ReadSplit(strings.NewReader("a,train\nb,train\n"), splitIDs, splitClasses); !errors.Is(err,
		ErrSplit) {
		t.Errorf("no test nodes: got %v", err)
	}
}

func FuzzReadSplit(f *testing.F) {
	f.Add("id,split\na,train\nb,test\n")
	f.Add("{\"id\":\"a\",\"split\":\"train\"}\n{\"id\":\"b\",\"split\":\"test\"}\n")
	f.Fuzz(func(t *testing.T, file string) {
		s, _, err := ReadSplit(strings.NewReader(file), splitIDs, splitClasses)
		if err != nil {
			return
		}
		if err := s.check(splitClasses); err != nil {
			t.Error(err)
		}
		if n := len(slices.Concat(s.Train, s.Validation, s.Test)); n > len(splitIDs) {
			t.Errorf("%d nodes of %d", n, len(splitIDs))
		}
	})
}
