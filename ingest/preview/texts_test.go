package preview

import (
	"strings"
	"testing"
)

// A vector that was taken for a text is noticed, and a text with numbers is not.
func TestVectorsTakenForTexts(t *testing.T) {
	vector := strings.Repeat("-0.0123456,", 512)
	for text, want := range map[string]bool{
		vector:                              true,
		"[" + vector + "1e-07]":             true,
		strings.Repeat("0.5 ", 16):          true,
		strings.Repeat("0.5 ", 15):          false,
		"Screws 3.5 x 16 mm, 200 pieces":    false,
		strings.Repeat("size 42, ", 40):     false,
		"sizes " + strings.Repeat("38 ", 8): false,
	} {
		var c textCounts
		c.add(text)
		got := c.result()
		if (got.Numbers == 1) != want || (got.Warning() != "") != want {
			t.Errorf("%.40q: %+v", text, got)
		}
	}
	var c textCounts
	for range 20 {
		c.add("a warm sock")
	}
	c.add(vector)
	if got := c.result(); got.Numbers != 1 || got.Warning() != "" {
		t.Errorf("one of many: %+v", got)
	}
}
