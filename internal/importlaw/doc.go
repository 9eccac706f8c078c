// Package importlaw holds the law of which package may link which, as a table in importlaw_test.go, and the test that
// enforces the table on the output of go list. Beside it are the tests that compare pages with the code:
// docs/DEPENDENCIES.md with the requirements, and the links of all pages with what they name.
package importlaw
