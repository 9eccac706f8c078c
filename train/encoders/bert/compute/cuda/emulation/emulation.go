//go:build cuda

// Package emulation is for tests of package cuda: a driver, libcuda.so.1, whose device is the
// processor. It runs the kernels' own sources, compiled by g++ (driver/build), with the threads of a
// block one at a time, and looks at each of their accesses (driver/check.cpp). A program uses it if it
// finds it where it looks for libcuda.so.1.
//
// It says whether the kernels compute what they should. It says nothing of speed, and not that a
// device does the same.
//
// GIANTSTREAM_EMULATED_ORDER is the order in which threads and blocks run: 0 forward, 1 backward, 2
// shuffled. GIANTSTREAM_EMULATED_SM is the compute capability, 90 for 9.0.
package emulation

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

static void *find(const char *name) { return dlsym(RTLD_DEFAULT, name); }
static void call_fail(void *f, const char *function, long n, int code) {
	((void (*)(const char *, long, int))f)(function, n, code);
}
static void call_memory(void *f, size_t bytes) { ((void (*)(size_t))f)(bytes); }
static void call_capability(void *f, int major, int minor) { ((void (*)(int, int))f)(major, minor); }
static size_t call_used(void *f) { return ((size_t (*)(void))f)(); }
*/
import "C"

import "unsafe"

// Codes of errors, as cuda.h numbers them.
const (
	OutOfMemory      = 2
	ECCUncorrectable = 214
	IllegalAddress   = 700
	LaunchFailed     = 719
)

func find(name string) unsafe.Pointer {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.find(s)
}

// Present reports whether the program's driver is the emulation. Without it nothing else works.
func Present() bool { return find("emulation_fail") != nil }

// Fail makes the n-th call from now on of a function of the driver fail.
func Fail(function string, n, code int) {
	s := C.CString(function)
	defer C.free(unsafe.Pointer(s))
	C.call_fail(find("emulation_fail"), s, C.long(n), C.int(code))
}

// SetMemory sets how many bytes the device has.
func SetMemory(bytes int) { C.call_memory(find("emulation_memory"), C.size_t(bytes)) }

// SetCapability sets the compute capability of devices that are opened from now on.
func SetCapability(major, minor int) {
	C.call_capability(find("emulation_capability"), C.int(major), C.int(minor))
}

// Used returns how many bytes are allocated.
func Used() int { return int(C.call_used(find("emulation_used"))) }
