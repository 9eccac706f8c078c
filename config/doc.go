// Package config is the configuration of a pipeline: one YAML file, typed, with a default for every
// field.
//
// [Load] goes through three steps. Default gives every field its value. The file is decoded over
// it, strictly: an unknown field, a value of the wrong type, or a ${VARIABLE} that is not set is a
// fault. Validate then checks each value, and values against one another. All faults of all steps
// are reported at once, as an *Error that names the line and the field of each.
//
// # Environment
//
// Scalar values may contain ${NAME} or ${NAME:-default}; the default counts when the variable is
// unset or empty. $${ stands for a plain ${. The variable's content is never read as YAML. Inside
// braces and brackets YAML wants the quotes: {password: "${PASSWORD}"}.
//
// # Secrets
//
// Fields of type Secret print as *** through fmt, slog, JSON and YAML. Addresses are refused with
// credentials or a query in them. A line that an error quotes ends before the first character that
// may be part of a secret: it shows names of fields, and single words that are values of other
// fields. FuzzSecretsStayInFiles checks all of it.
//
// The package checks what can be known from the file alone. Whether a broker answers or a bucket
// exists shows when they are used. Only commands import this package; the others get the plain
// values they need.
package config
