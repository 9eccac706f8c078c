// Package importlaw holds the law of which package may link which, as a table in
// importlaw_test.go, and the test that enforces the table on the output of go list.
package importlaw
