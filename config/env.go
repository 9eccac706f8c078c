package config

import (
	"errors"
	"fmt"
	"reflect"
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
			return "", unsetError{name}
		}
		out.WriteString(value)
		text = rest
	}
}

// unsetError says that a value refers to a variable that is not set.
type unsetError struct{ name string }

func (e unsetError) Error() string {
	return fmt.Sprintf("environment variable %s is not set; set it, or give a default as in ${%s:-value}",
		e.name, e.name)
}

// refersToUnset reports whether a value refers to a variable that is not set.
func refersToUnset(raw string, env func(string) (string, bool)) bool {
	_, err := expand(raw, env)
	_, unset := errors.AsType[unsetError](err)
	return unset
}

// expandFor is expand for a value of the field v. What looks like a variable's name in the middle of a secret may be
// a part of the secret, and stays out of the error.
func expandFor(v reflect.Value, raw string, env func(string) (string, bool)) (string, error) {
	text, err := expand(raw, env)
	unset, ok := errors.AsType[unsetError](err)
	if !ok || raw == "${"+unset.name+"}" {
		return text, err
	}
	if _, secret := v.Interface().(Secret); secret || !plainText.MatchString(raw) {
		err = errors.New("has a variable in it that is not set; write $${ for a plain ${")
	}
	return text, err
}
