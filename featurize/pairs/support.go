package pairs

const (
	// mostSupport is the support that is asked for where orders are many.
	mostSupport = 3
	// enoughPartners an item has on average, or half of those that a rule keeps, before a pair of fewer orders counts.
	enoughPartners = 15
	// askedItems are counted to tell.
	askedItems = 4096
)

// Settle returns a rule with a support: its own or, if that is 0, the largest up to 3 by which items have partners
// enough. Chance alone makes pairs of one order, so that where pairs are many those that come again tell more. In a
// shop whose orders have two or three items of many thousands, hardly any pair comes again, and all tell something.
func (x *Incidence) Settle(rule Rule, workers int) Rule {
	if rule.MinSupport > 0 {
		return rule
	}
	var ordered, asked []int32
	for i := range int32(x.Items()) {
		if x.Support(i) > 0 {
			ordered = append(ordered, i)
		}
	}
	for k, n := 0, min(len(ordered), askedItems); k < n; k++ {
		asked = append(asked, ordered[k*len(ordered)/n])
	}
	enough := enoughPartners
	if rule.MaxPartners > 0 {
		enough = min(enough, (rule.MaxPartners+1)/2)
	}
	counters := x.NewCounters(workers)
	for rule.MinSupport = mostSupport; rule.MinSupport > 1; rule.MinSupport-- {
		found := 0
		for _, partners := range counters.PartnersOf(asked, rule) {
			found += len(partners)
		}
		if found >= enough*len(asked) {
			break
		}
	}
	return rule
}
