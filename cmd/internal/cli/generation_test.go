package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"giantstream/cmd/internal/cli/command"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
)

func TestOrdersOfAGeneration(t *testing.T) {
	d := &generation.Doc{Graph: generation.GraphStats{Nodes: 300, Orders: &generation.OrderStats{Orders: 1234, Lines: 5678,
		Unknown: 12, Large: 1, Items: 231, Pairs: 91011, Kept: 1213,
		Partners: []generation.AtLeast{{Partners: 1, Items: 230}, {Partners: 5, Items: 7}}}}}
	var b strings.Builder
	printOrders(&command.Printer{Out: &b}, d)
	const want = `orders        1,234 orders of 5,678 lines; 1,213 of 91,011 pairs of nodes linked
              231 of 300 nodes ordered; of these, 230 have 1, 7 have 5 partners or more
              12 lines have no node; 1 order has over 2,000 items, whose pairs do not count
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	d.Graph.Orders = nil
	b.Reset()
	if printOrders(&command.Printer{Out: &b}, d); b.Len() > 0 {
		t.Errorf("without orders: %q", b.String())
	}
}

// What earlier releases called the neighbourhoods of held-out nodes was told by heads that had begun at sums over the
// texts of these very nodes: on random links P@1 was 0.63.
func TestAGenerationClaimsNoNeighbourhoodsOfHeldOutNodes(t *testing.T) {
	d := &generation.Doc{Evaluation: []fit.Evaluation{{Encoder: "hybrid"}}}
	d.Encoder.Metrics = json.RawMessage(`{"levels": [{"clusters": 2497, "p_at_1": 0.634}]}`)
	var b strings.Builder
	printEvaluation(&command.Printer{Out: &b}, d)
	if got := b.String(); !strings.Contains(got, "hybrid") || strings.Contains(got, "0.634") {
		t.Errorf("got\n%s", got)
	}
}
