#pragma once

#include <cstddef>
#include <cstdint>

// check looks at every access of the kernels, if these were compiled with -fsanitize=thread: an
// access outside the device's memory or before anything was written there, a misaligned one, and
// two accesses of different threads, one of them a write, that no barrier separates.
namespace check {

// device says that [base, base + room) is the device's address space, and allocated and freed what
// of it may be used. written marks numbers as written by a copy.
void device(uintptr_t base, size_t room);
void allocated(uintptr_t at, size_t bytes);
void freed(uintptr_t at, size_t bytes);
void written(uintptr_t at, size_t bytes);

// What the scheduler tells: a launch begins, a block, a thread runs, all threads of the block have
// met, the launch is over.
void launch(const char *shared, const char *shared_end);
void block();
void thread(unsigned number);
void barrier();
void finish();

} // namespace check
