//go:build !unix

package main

// keepPrivate does nothing: files inherit the rights of their folder.
func keepPrivate() {}
