//go:build unix

package command

import "syscall"

// keepPrivate takes the rights of others from every file that the process makes, those of the storage
// engine and the embedded broker included: they hold texts and ids. A umask that takes more stays.
func keepPrivate() {
	umask := syscall.Umask(0o077)
	syscall.Umask(umask | 0o077)
}
