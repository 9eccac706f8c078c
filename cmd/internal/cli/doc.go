// Package cli is the command line of cmd/giantstream and cmd/giantstream-cuda, which differ in the devices that they
// link, and in nothing else. It has the root command, and the commands that run, try and build a pipeline, a file per
// command. The other commands are in packages of their own: generations, evaluate, operate and sinkprocess. All of
// them stand on package command. The scripts in cmd/e2e/cli/testdata show what each command prints.
package cli
