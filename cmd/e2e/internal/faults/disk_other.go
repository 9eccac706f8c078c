//go:build !linux

package faults

import "errors"

// FillDisk is possible on Linux only.
func FillDisk(int, uint64) error { return errors.ErrUnsupported }

// FreeDisk is possible on Linux only.
func FreeDisk(int) error { return errors.ErrUnsupported }
