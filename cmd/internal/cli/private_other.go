//go:build !unix

package cli

// keepPrivate does nothing: files inherit the rights of their folder.
func keepPrivate() {}
