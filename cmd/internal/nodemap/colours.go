package nodemap

import (
	"fmt"
	"strings"
)

// Colours holds the colour of each group by its number; the last colour is for the rest. A reader can distinguish the
// colours on a light and on a dark background.
var Colours = [Coloured + 1]string{"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#17a2b8", "#d4a900",
	"#f783ac", "#9c755f", "#7a6ff0", "#8fbf3f", "#c2255c", "#98a1aa"}

// Style returns the rules of CSS that fill what has the class k0, k1, … with the group's colour.
func Style() string {
	var rules strings.Builder
	for i, colour := range Colours {
		fmt.Fprintf(&rules, ".k%d { fill: %s; }\n", i, colour)
	}
	return rules.String()
}
