package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${NAME} and ${NAME:-default} in one scalar value. The value of a variable is not
// expanded again.
func expand(text string, env func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			out.WriteString(text)
			return out.String(), nil
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			out.WriteString(plain + "${")
			text = after
			continue
		}
		out.WriteString(before)
		reference, rest, closed := strings.Cut(after, "}")
		if !closed {
			return "", errors.New("has ${ without }; write $${ for a plain ${")
		}
		name, fallback, hasFallback := strings.Cut(reference, ":-")
		if !variableName.MatchString(name) {
			return "", errors.New("has a ${ } that names no environment variable; write $${ for a plain ${")
		}
		value, set := env(name)
		switch {
		case hasFallback && value == "":
			value = fallback
		case !set:
			return "", fmt.Errorf("environment variable %s is not set; set it, or give a default as in ${%s:-value}",
				name, name)
		}
		out.WriteString(value)
		text = rest
	}
}
