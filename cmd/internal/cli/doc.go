// Package cli is the command line, a file per command: flags, signals, exit codes, output. The
// programs cmd/giantstream and cmd/giantstream-cuda differ in the devices that they link, and in
// nothing else. The scripts in cmd/e2e/cli/testdata show what each command prints.
package cli
