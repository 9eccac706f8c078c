package config_test

import (
	"runtime"
	"strings"
	"testing"

	"giantstream/config"
)

// TestNestingIsBounded parses what the parser alone would take minutes and gigabytes for.
func TestNestingIsBounded(t *testing.T) {
	for name, data := range map[string]string{
		"brackets":          strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"open brackets":     "store: " + strings.Repeat("[", 200_000),
		"braces":            strings.Repeat("{a: ", 50_000),
		"entries on a line": strings.Repeat("- ", 100_000),
		"tags":              "store: " + strings.Repeat("!a ", 80_000) + "x",
		"anchors":           "store: " + strings.Repeat("&a ", 80_000) + "x",
		"explicit keys":     strings.Repeat("? ", 100_000),
		"indented keys":     indented(600),
		"many lines":        strings.Repeat("a: 1\n", 50_000),
		"many elements":     "store: [" + strings.Repeat("a,", 120_000) + "]",
		"laughs":            laughs(),
		"too large":         strings.Repeat("#\n", 200_000),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := config.Parse([]byte(data), env)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("it was accepted")
			}
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 200 {
				t.Errorf("%d MiB were allocated", mb)
			}
		})
	}
}

func indented(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// laughs is an exponential expansion by aliases.
func laughs() string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := 1; i < 30; i++ {
		n, last := string(rune('a'+i%26))+strings.Repeat("x", i), "a0"
		b.WriteString(n + ": &" + n + " [" + strings.Repeat("*"+last+",", 9) + "]\n")
	}
	return b.String()
}
