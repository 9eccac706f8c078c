package e2e_test

import (
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"
	"testing"
)

// TestEdgesOfOneKindEach: a graph is the same whether a field says the kind of each edge, or each kind comes from a
// topic of its own.
func TestEdgesOfOneKindEach(t *testing.T) {
	t.Parallel()
	inputs := t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	a := newAuthor(9, 400)
	var phases [2][2][]string // by history: the arguments of either way
	for i, h := range []history{a.beginning(), a.later()} {
		dir := filepath.Join(inputs, fmt.Sprint(i))
		var all strings.Builder
		byKind := map[string]*strings.Builder{"": {}, "also_viewed": {}, "part_of": {}}
		for kind, b := range byKind {
			b.WriteString(map[string]string{"part_of": "item,set,at,deleted\n"}[kind])
			if kind != "part_of" {
				b.WriteString("src,dst,at,deleted\n")
			}
		}
		all.WriteString("src,dst,kind,at,deleted\n")
		for _, e := range h.edges {
			of := fnv.New32a()
			_, _ = of.Write([]byte(e.Src + " " + e.Dst))
			kind := []string{"", "also_viewed", "part_of"}[of.Sum32()%3]
			fmt.Fprintf(&all, "%s,%s,%s,%d,%t\n", e.Src, e.Dst, kind, e.At, e.Deleted)
			fmt.Fprintf(byKind[kind], "%s,%s,%d,%t\n", e.Src, e.Dst, e.At, e.Deleted)
		}
		nodes := history{nodes: h.nodes}
		args := append([]string{"run", "-c", config, "--until-idle"}, nodes.write(t, dir)[:2]...)
		phases[i][0] = append(args[:len(args):len(args)], "--edge-kind", "kind",
			"--edges", writeFile(t, filepath.Join(dir, "all.csv"), all.String()))
		phases[i][1] = append(args[:len(args):len(args)], "--edge-topic", "views/also_viewed",
			"--edge-topic", "sets/part_of=item,set")
		for kind, topic := range map[string]string{"": "", "also_viewed": "views=", "part_of": "sets="} {
			phases[i][1] = append(phases[i][1], "--edges",
				topic+writeFile(t, filepath.Join(dir, "kind-"+kind+".csv"), byKind[kind].String()))
		}
	}
	var outcomes [2]outcome
	for way := range outcomes {
		dir := t.TempDir()
		for i := range phases {
			succeed(t, append(phases[i][way], "--store", dir)...)
		}
		checkLog(t, dir)
		outcomes[way] = readOutcome(t, dir)
	}
	kinds := map[string]int{}
	for _, row := range outcomes[0].rows {
		for _, kind := range row.LinkKinds {
			kinds[kind]++
		}
	}
	if kinds["also_viewed"] < 100 || kinds["part_of"] < 100 {
		t.Fatalf("the rows have links of the kinds %v", kinds)
	}
	sameMap(t, "newest row", outcomes[1].rows, outcomes[0].rows)
	sameMap(t, "embedding", withoutSeq(outcomes[1].embeddings), withoutSeq(outcomes[0].embeddings))
}
