// Package schedulers tests the examples of docs/deploy/build: builds by the finished program, handed out by schedulers
// that are installed, or by stand-ins that run what the examples submit.
package schedulers
