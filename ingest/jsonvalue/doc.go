// Package jsonvalue writes typed values as JSON. Parquet, Avro and Protobuf all state types that JSON
// lacks: decimals, dates, times with a unit, binary. A reader of such a format gives each value to the
// function of its logical type, so that the same value becomes the same JSON from any of them, and
// package decode makes the same id, text or event time of it. The table for users is in
// docs/format/input.md.
//
// What a field cannot be mapped to is an object: binary is {"base64": "…"}, an infinite float is
// {"float": "Infinity"}. Package decode refuses objects as ids, texts and event times, so these become
// dead letters. A float that may stand for several integers has an exponent, and package decode
// refuses exponents in ids and event times.
package jsonvalue
