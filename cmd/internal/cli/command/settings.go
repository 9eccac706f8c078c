package command

import (
	"maps"
	"slices"
)

// Setting is a field that differs between two sides.
type Setting struct {
	Field string `json:"field"`
	A     string `json:"a"`
	B     string `json:"b"`
}

// DifferentSettings lists the settings in which two sides differ, by name.
func DifferentSettings(a, b map[string]string) []Setting {
	out := []Setting{}
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a[name] != b[name] {
			out = append(out, Setting{name, a[name], b[name]})
		}
	}
	return out
}
