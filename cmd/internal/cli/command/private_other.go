//go:build !unix

package command

// keepPrivate does nothing: files inherit the rights of their folder.
func keepPrivate() {}
