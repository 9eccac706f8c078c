package config

import (
	"fmt"
	"strings"
)

// Fault is one thing wrong with a configuration.
type Fault struct {
	// Path is the field, "kafka.topics.nodes"; "" for the file as a whole.
	Path string
	// Line and Column count from 1; 0 where the field is not in a file.
	Line, Column int
	// Message says what is wrong and what would be right.
	Message string
	// Excerpt is the offending line, up to the first character that may be part of a secret.
	Excerpt string
}

// Error lists all faults of a configuration.
type Error struct {
	// File is the name of the file, "" if there was none.
	File   string
	Faults []Fault // in the order of the file
}

func (e *Error) Error() string {
	var b strings.Builder
	name := e.File
	if name == "" {
		name = "configuration"
	}
	if len(e.Faults) != 1 {
		fmt.Fprintf(&b, "%s: %d faults\n", name, len(e.Faults))
	}
	for i, f := range e.Faults {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(name)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		b.WriteString(": ")
		if f.Path != "" {
			b.WriteString(f.Path + ": ")
		}
		b.WriteString(f.Message)
		if f.Excerpt != "" {
			fmt.Fprintf(&b, "\n%6d | %s", f.Line, f.Excerpt)
		}
	}
	return b.String()
}
