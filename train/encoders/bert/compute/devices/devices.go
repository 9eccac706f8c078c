package devices

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
)

// Device is an open machine.
type Device interface {
	compute.Backend
	// Name is what it is called in logs, such as "NVIDIA H200".
	Name() string
	// Emulated says that it is no hardware but an imitation for tests, whose speed says nothing.
	Emulated() bool
	// Close gives everything on the device back. Nothing on it may run, and after it only Free may
	// be called.
	Close() error
}

// Options say how a device is used. They are not for the CPU.
type Options struct {
	// Memory is how many bytes may be taken of it, 0 for all.
	Memory int64
	// Math is how it multiplies; "" is compute.Float32.
	Math compute.Math
}

// Driver opens the device of a number, from 0.
type Driver func(number int, o Options) (Device, error)

// Drivers are the drivers by the kind of device. The CPU needs none.
type Drivers map[string]Driver

const cpuKind = "cpu"

var (
	// ErrName: a name that is no device's.
	ErrName = errors.New(`no device has this name; use "cpu", "cuda" or "cuda:1"`)
	// ErrNoDriver: the program has no driver of such devices.
	ErrNoDriver = errors.New("this program has no driver for the device")
)

// Open opens the device of a name.
func (d Drivers) Open(name string, o Options) (Device, error) {
	kind, number, err := parse(name)
	if err != nil {
		return nil, err
	}
	if kind == cpuKind {
		return processor{cpu.New()}, nil
	}
	open, ok := d[kind]
	if !ok {
		return nil, fmt.Errorf("%w %s; it runs on: %s", ErrNoDriver, name, strings.Join(d.kinds(), ", "))
	}
	device, err := open(number, o)
	if err != nil {
		return nil, fmt.Errorf("open the device %s: %w", name, err)
	}
	return device, nil
}

// kinds are the kinds of devices that can be opened.
func (d Drivers) kinds() []string { return append([]string{cpuKind}, slices.Sorted(maps.Keys(d))...) }

// parse splits a name into the kind and the number of a device.
func parse(name string) (kind string, number int, err error) {
	kind, digits, numbered := strings.Cut(name, ":")
	if numbered {
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || strconv.FormatUint(n, 10) != digits {
			return "", 0, fmt.Errorf("device %q: %w", name, ErrName)
		}
		number = int(n)
	}
	if kind == "" || kind == cpuKind && numbered {
		return "", 0, fmt.Errorf("device %q: %w", name, ErrName)
	}
	return kind, number, nil
}

// OrCPU returns the backend, or the CPU's for nil.
func OrCPU(be compute.Backend) compute.Backend {
	if be == nil {
		return cpu.New()
	}
	return be
}

// processor is the CPU as a Device.
type processor struct{ *cpu.Backend }

// Name returns "cpu".
func (processor) Name() string { return cpuKind }

// Emulated returns false.
func (processor) Emulated() bool { return false }

// Close does nothing.
func (processor) Close() error { return nil }
