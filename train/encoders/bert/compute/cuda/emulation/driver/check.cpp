// The checker: gcc's -fsanitize=thread inserts a call before each access, and this answers it.
#include "check.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "block.h"
#include "cuda.h"

namespace {

// Shadow is what is known of four bytes of memory.
struct Shadow {
    uint32_t written_at; // the interval of the last write, 0 for never
    uint32_t read_at;    // and of the last read
    uint32_t written_by; // thread within the grid, plus one
    uint32_t read_by;    // the same; MANY for several threads of one interval
};

constexpr uint32_t MANY = 0xffffffff;
constexpr uint8_t USABLE = 1, INITIALIZED = 2;

// Memory is an address space with a shadow. States are per byte of granule.
struct Memory {
    uintptr_t base = 0;
    size_t bytes = 0;
    Shadow *shadow = nullptr;
    uint8_t *state = nullptr;

    static void *map(size_t bytes) {
        void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            perror("emulation: memory of the checker");
            abort();
        }
        return p;
    }
    void open(uintptr_t at, size_t room) {
        base = at;
        bytes = room;
        shadow = static_cast<Shadow *>(map(room / 4 * sizeof(Shadow)));
        state = static_cast<uint8_t *>(map(room / 4));
    }
    bool has(uintptr_t at) const { return at - base < bytes; }
};

Memory global, shared;

bool running;           // kernels run: accesses of the driver itself do not count
uint32_t launch_first;  // intervals below it belong to earlier launches
uint32_t block_first;   // intervals below it, to earlier blocks
uint32_t interval = 1;  // between two barriers of a block; never the same twice
uint32_t block_number;
uint32_t now;           // the thread that runs, within the grid, plus one

// conflicts reports whether an access of the past, by another thread, is not separated from one of
// now: within the launch, blocks never are, and threads of a block only by a barrier.
bool conflicts(uint32_t at, uint32_t by, bool is_shared) {
    if (at < launch_first || by == now) {
        return false;
    }
    if (at < block_first) {
        return !is_shared; // another block of this launch, which has shared memory of its own
    }
    return at == interval;
}

std::string where(uintptr_t at, bool is_shared) {
    char text[64];
    if (is_shared) {
        snprintf(text, sizeof text, "shared memory at +%zu", at - shared.base);
    } else {
        snprintf(text, sizeof text, "device memory at 0x%zx", at);
    }
    return text;
}

void access(uintptr_t at, size_t size, bool write) {
    if (!running) {
        return;
    }
    const bool is_shared = shared.has(at);
    if (!is_shared && !global.has(at)) {
        return; // a thread's own variables, arguments
    }
    Memory &m = is_shared ? shared : global;
    if (at % size != 0) {
        stop("a misaligned access of " + std::to_string(size) + " bytes to " + where(at, is_shared));
    }
    for (size_t i = (at - m.base) / 4; i <= (at + size - 1 - m.base) / 4; i++) {
        uint8_t &state = m.state[i];
        if (!(state & USABLE)) {
            stop("an access beyond what was allocated: " + where(at, is_shared));
        }
        Shadow &s = m.shadow[i];
        if (!write && !(state & INITIALIZED)) {
            stop("a read of what was never written: " + where(at, is_shared));
        }
        if (conflicts(s.written_at, s.written_by, is_shared) ||
            (write && conflicts(s.read_at, s.read_by, is_shared))) {
            stop(std::string("a race: ") + (write ? "a write" : "a read") + " and another thread's access to " +
                  where(at, is_shared));
        }
        if (write) {
            state |= INITIALIZED;
            s.written_at = interval;
            s.written_by = now;
        } else {
            s.read_by = s.read_at == interval && s.read_by != now ? MANY : now;
            s.read_at = interval;
        }
    }
}

} // namespace

namespace check {

void device(uintptr_t base, size_t room) { global.open(base, room); }

void allocated(uintptr_t at, size_t bytes) {
    memset(global.state + (at - global.base) / 4, USABLE, (bytes + 3) / 4);
}

void freed(uintptr_t at, size_t bytes) { memset(global.state + (at - global.base) / 4, 0, (bytes + 3) / 4); }

void written(uintptr_t at, size_t bytes) {
    memset(global.state + (at - global.base) / 4, USABLE | INITIALIZED, (bytes + 3) / 4);
}

void launch(const char *begin, const char *end) {
    if (!shared.base) {
        shared.open(reinterpret_cast<uintptr_t>(begin) & ~uintptr_t(15), (end - begin + 31) & ~size_t(15));
    }
    if (interval > 0xf0000000u) {
        // Too many to count on: what is known of earlier launches does not matter any more.
        memset(global.shadow, 0, global.bytes / 4 * sizeof(Shadow));
        memset(shared.shadow, 0, shared.bytes / 4 * sizeof(Shadow));
        interval = 1;
    }
    launch_first = ++interval;
    block_number = 0;
    running = true;
}

void block() {
    block_first = ++interval;
    block_number++;
    memset(shared.state, USABLE, shared.bytes / 4);
}

// A block has at most 1024 threads; numbers wrap around in very large grids, which can only hide
// a race between far blocks.
void thread(unsigned number) { now = block_number * 1024 + number + 1; }

void barrier() { interval++; }

void finish() { running = false; }

} // namespace check

void emulated_copy(void *to, const void *from, size_t bytes) {
    access(reinterpret_cast<uintptr_t>(from), bytes, false);
    access(reinterpret_cast<uintptr_t>(to), bytes, true);
    memcpy(to, from, bytes);
}

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
#define ACCESS(NAME, SIZE, WRITE)                                                                                      \
    void __tsan_##NAME(void *at) { access(reinterpret_cast<uintptr_t>(at), SIZE, WRITE); }
ACCESS(read1, 1, false)
ACCESS(read2, 2, false)
ACCESS(read4, 4, false)
ACCESS(read8, 8, false)
ACCESS(read16, 16, false)
ACCESS(write1, 1, true)
ACCESS(write2, 2, true)
ACCESS(write4, 4, true)
ACCESS(write8, 8, true)
ACCESS(write16, 16, true)
ACCESS(unaligned_read2, 2, false)
ACCESS(unaligned_read4, 4, false)
ACCESS(unaligned_read8, 8, false)
ACCESS(unaligned_read16, 16, false)
ACCESS(unaligned_write2, 2, true)
ACCESS(unaligned_write4, 4, true)
ACCESS(unaligned_write8, 8, true)
ACCESS(unaligned_write16, 16, true)
ACCESS(vptr_read, 8, false)
void __tsan_read_range(void *at, size_t size) {
    for (size_t i = 0; i < size; i += 4) {
        access(reinterpret_cast<uintptr_t>(at) + i, 4, false);
    }
}
void __tsan_write_range(void *at, size_t size) {
    for (size_t i = 0; i < size; i += 4) {
        access(reinterpret_cast<uintptr_t>(at) + i, 4, true);
    }
}
void *__tsan_memset(void *at, int value, size_t size) {
    __tsan_write_range(at, size);
    return memset(at, value, size);
}
void *__tsan_memcpy(void *to, const void *from, size_t size) {
    __tsan_read_range(const_cast<void *>(from), size);
    __tsan_write_range(to, size);
    return memcpy(to, from, size);
}
} // extern "C"
