// The scheduler: threads of a block as fibers.
#include "block.h"

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>

#include "check.h"
#include "cuda.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" char __start_shared_memory[], __stop_shared_memory[];

namespace {

constexpr size_t STACK = 128 << 10, PAGE = 4096;
constexpr unsigned WARP = 32, MOST_THREADS = 1024;

enum class State { ready, block_barrier, warp_barrier, done };

struct Fiber {
    State state;
    jmp_buf at;
    ucontext_t context;
    bool started;
    // Where it waits: threads of a block or a warp must wait in the same place.
    const char *file;
    int line;
    float value; // what the warp's other threads may read
    const float *left, *right;
};

Fiber fibers[MOST_THREADS];
char *stacks;
unsigned count;        // threads of the block
unsigned current;      // which of them runs
jmp_buf scheduler;
const Kernel *kernel;
void **parameters;
std::string wrong;     // the first mistake
uint64_t random_state;

uint64_t next_random() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

void fault(const std::string &what) {
    wrong = what + " (kernel " + kernel->name + ", block " + std::to_string(blockIdx.x) + "," +
            std::to_string(blockIdx.y) + ", thread " + std::to_string(current) + ")";
}

void leave() {
    if (_setjmp(fibers[current].at) == 0) {
        _longjmp(scheduler, 1);
    }
}

// body is what a fiber does, block after block.
void body() {
    for (;;) {
        kernel->call(parameters);
        fibers[current].state = State::done;
        leave();
    }
}

void wait(State state, const char *file, int line) {
    Fiber &f = fibers[current];
    f.state = state;
    f.file = file;
    f.line = line;
    leave();
}

void resume(unsigned i) {
    current = i;
    threadIdx = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    check::thread(i);
    if (_setjmp(scheduler) != 0) {
        return;
    }
    Fiber &f = fibers[i];
    if (f.started) {
        _longjmp(f.at, 1);
    }
    f.started = true;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = stacks + i * STACK + PAGE;
    f.context.uc_stack.ss_size = STACK - PAGE;
    f.context.uc_link = nullptr;
    makecontext(&f.context, body, 0);
    setcontext(&f.context);
}

std::string place(const Fiber &f) {
    const char *slash = strrchr(f.file, '/');
    return std::string(slash ? slash + 1 : f.file) + ":" + std::to_string(f.line);
}

// release lets the threads first … end−1 go on if all of them wait at the same barrier.
bool release(unsigned first, unsigned end, State barrier) {
    for (unsigned i = first; i < end; i++) {
        if (fibers[i].state != barrier) {
            return false;
        }
        if (fibers[i].line != fibers[first].line || strcmp(fibers[i].file, fibers[first].file) != 0) {
            fault("threads wait at different barriers: " + place(fibers[first]) + " and " + place(fibers[i]));
            return false;
        }
    }
    for (unsigned i = first; i < end; i++) {
        fibers[i].state = State::ready;
    }
    return true;
}

void arrange(std::vector<unsigned> &turn, Order order) {
    for (unsigned i = 0; i < turn.size(); i++) {
        turn[i] = order == Order::backward ? turn.size() - 1 - i : i;
    }
    if (order == Order::shuffled) {
        for (unsigned i = turn.size(); i > 1; i--) {
            std::swap(turn[i - 1], turn[next_random() % i]);
        }
    }
}

// run_block runs the threads of a block until all are done.
void run_block(Order order) {
    memset(__start_shared_memory, 0xff, __stop_shared_memory - __start_shared_memory);
    check::block();
    std::vector<unsigned> turn(count);
    for (unsigned i = 0; i < count; i++) {
        fibers[i].state = State::ready;
    }
    for (;;) {
        arrange(turn, order);
        bool went_on = false;
        for (unsigned i : turn) {
            if (fibers[i].state == State::ready) {
                resume(i);
                went_on = true;
                if (!wrong.empty()) {
                    return;
                }
            }
        }
        unsigned done = 0;
        for (unsigned i = 0; i < count; i++) {
            done += fibers[i].state == State::done;
        }
        if (done == count) {
            return;
        }
        if (release(0, count, State::block_barrier)) {
            check::barrier();
            went_on = true;
        }
        for (unsigned i = 0; i < count; i += WARP) {
            went_on |= release(i, std::min(i + WARP, count), State::warp_barrier);
        }
        if (!went_on && wrong.empty()) {
            for (unsigned i = 0; i < count; i++) {
                if (fibers[i].state != State::done) {
                    fault("thread " + std::to_string(i) + " waits at " + place(fibers[i]) +
                          " for threads that never come");
                    break;
                }
            }
        }
        if (!wrong.empty()) {
            return;
        }
    }
}

} // namespace

void emulated_syncthreads(const char *file, int line) { wait(State::block_barrier, file, line); }

float emulated_shuffle(unsigned mask, float value, int lanes, const char *file, int line) {
    if (mask != 0xffffffffu || count % WARP != 0) {
        stop("a shuffle of part of a warp");
    }
    fibers[current].value = value;
    wait(State::warp_barrier, file, line);
    const float other = fibers[current ^ lanes].value;
    wait(State::warp_barrier, file, line);
    return other;
}

int emulated_lane() { return current % WARP; }

void emulated_matrix(const void *at, size_t stride, const char *file, int line) {
    if (reinterpret_cast<uintptr_t>(at) % 32 != 0 || stride % 16 != 0) {
        stop("a matrix of a warp at an address that is no multiple of 32 bytes, or with rows " +
             std::to_string(stride) + " bytes apart, no multiple of 16");
    }
    if (count % WARP != 0) {
        stop("a matrix of part of a warp");
    }
    wait(State::warp_barrier, file, line);
}

void emulated_mma(float *d, const float *a, const float *b, const float *c, int m, int n, int k, const char *file,
                  int line) {
    fibers[current].left = a;
    fibers[current].right = b;
    wait(State::warp_barrier, file, line);
    const Fiber *warp = fibers + current / WARP * WARP;
    const int each = m * n / WARP, of_a = m * k / WARP, of_b = k * n / WARP;
    float sums[32];
    for (int i = 0; i < each; i++) {
        const int place = current % WARP * each + i, row = place / n, column = place % n;
        // A device does not say how it rounds within an instruction. Here the sum is exact to a double's precision.
        double sum = c[i];
        for (int j = 0; j < k; j++) {
            const int left = row * k + j, right = j * n + column;
            sum += double(warp[left / of_a].left[left % of_a]) * warp[right / of_b].right[right % of_b];
        }
        sums[i] = float(sum);
    }
    wait(State::warp_barrier, file, line);
    std::copy_n(sums, each, d);
}

void stop(const std::string &what) {
    fault(what);
    _longjmp(scheduler, 1);
}


std::string run(const Kernel &k, Dimensions grid, Dimensions block, void **arguments, Order order) {
    if (!stacks) {
        stacks = static_cast<char *>(mmap(nullptr, MOST_THREADS * STACK, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (stacks == MAP_FAILED) {
            perror("emulation: stacks of threads");
            abort();
        }
        for (unsigned i = 0; i < MOST_THREADS; i++) {
            mprotect(stacks + i * STACK, PAGE, PROT_NONE);
        }
    }
    count = block.x * block.y * block.z;
    gridDim = {grid.x, grid.y, grid.z};
    blockDim = {block.x, block.y, block.z};
    kernel = &k;
    parameters = arguments;
    wrong.clear();
    random_state = 88172645463325252ull;
    check::launch(__start_shared_memory, __stop_shared_memory);
    std::vector<unsigned> turn(grid.x * grid.y * grid.z);
    arrange(turn, order);
    for (unsigned i : turn) {
        blockIdx = {i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y};
        run_block(order);
        if (!wrong.empty()) {
            // Threads that are under way are abandoned: their stacks are used anew.
            for (Fiber &f : fibers) {
                f.started = false;
            }
            break;
        }
    }
    check::finish();
    return wrong;
}
