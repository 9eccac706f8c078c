// A driver for tests: libcuda.so.1 whose device is this processor. It has what compute/cuda calls
// of the functions that gorgonia.org/cu links; the others (unsupported.cpp) fail. It is stricter
// than a device: work begins as late as the interface allows, fresh memory is NaN, and memory that
// was not allocated cannot be touched.
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <map>
#include <memory>
#include <mutex>
#include <sys/mman.h>

#include "block.h"
#include "check.h"

namespace {

constexpr size_t PAGE = 4096, ADDRESSES = size_t(1) << 30;
constexpr unsigned STATIC_SHARED = 48 << 10;

// Described is what an image says of a kernel.
struct Described {
    std::vector<size_t> sizes; // of its parameters
    unsigned threads = 1024;   // at most
    size_t shared = 0;
};

struct Function {
    const Kernel *kernel;
    Described described;
};

struct Module {
    std::map<std::string, Described> described;
    std::map<std::string, std::unique_ptr<Function>> functions;
};

struct Allocation {
    size_t bytes, room;
    uintptr_t pages;
};

std::recursive_mutex lock;
int major = 9, minor = 0;
size_t memory = size_t(512) << 20, used;
Order order = Order::forward;
unsigned references; // to the primary context
CUresult lost = CUDA_SUCCESS;
std::string reason; // why it was lost
std::map<uintptr_t, Allocation> allocations;
std::map<uintptr_t, size_t> spaces; // free pages of the address space
std::vector<std::function<void()>> pending;
std::vector<std::unique_ptr<Module>> modules;
thread_local bool current;

// The call that shall fail.
std::string failing;
long failing_after;
CUresult failing_with;

int primary; // its address is the primary context
int only;    // its address is the stream

bool sticky(CUresult code) {
    switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_UNKNOWN:
        return true;
    default:
        return false;
    }
}

void lose(CUresult code, const std::string &why) {
    if (lost == CUDA_SUCCESS) {
        lost = code;
        reason = why;
        fprintf(stderr, "emulated device: %s\n", why.c_str());
    }
}

// enter is the beginning of every call that needs a context.
CUresult enter(const char *name) {
    if (!current || references == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (failing == name && --failing_after == 0) {
        failing.clear();
        if (sticky(failing_with)) {
            lose(failing_with, std::string(name) + " was told to fail");
        }
        return failing_with;
    }
    return lost;
}

#define ENTER                                                                                                          \
    std::lock_guard<std::recursive_mutex> held(lock);                                                                  \
    if (CUresult code = enter(__func__); code != CUDA_SUCCESS) {                                                       \
        return code;                                                                                                   \
    }

void finish() {
    std::vector<std::function<void()>> all;
    all.swap(pending);
    for (auto &work : all) {
        if (lost == CUDA_SUCCESS) {
            work();
        }
    }
}

uintptr_t addresses() {
    static const uintptr_t base = [] {
        void *p = mmap(nullptr, ADDRESSES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            perror("emulation: device memory");
            abort();
        }
        const auto at = reinterpret_cast<uintptr_t>(p);
        spaces[at] = ADDRESSES;
        check::device(at, ADDRESSES);
        return at;
    }();
    return base;
}

void release(std::map<uintptr_t, Allocation>::iterator i) {
    const Allocation &a = i->second;
    for (uintptr_t at = i->first + a.bytes; at < a.pages + a.room - PAGE; at++) {
        if (*reinterpret_cast<unsigned char *>(at) != 0xff) {
            lose(CUDA_ERROR_ILLEGAL_ADDRESS, "a write beyond the end of an allocation");
            break;
        }
    }
    check::freed(i->first, a.bytes);
    madvise(reinterpret_cast<void *>(a.pages), a.room, MADV_DONTNEED);
    mprotect(reinterpret_cast<void *>(a.pages), a.room, PROT_NONE);
    used -= a.bytes;
    auto space = spaces.emplace(a.pages, a.room).first;
    if (auto next = std::next(space); next != spaces.end() && space->first + space->second == next->first) {
        space->second += next->second;
        spaces.erase(next);
    }
    if (space != spaces.begin()) {
        if (auto before = std::prev(space); before->first + before->second == space->first) {
            before->second += space->second;
            spaces.erase(space);
        }
    }
    allocations.erase(i);
}

// inside reports whether bytes from at on lie in one allocation.
bool inside(CUdeviceptr at, size_t bytes) {
    auto i = allocations.upper_bound(at);
    if (i == allocations.begin()) {
        return false;
    }
    --i;
    return at + bytes <= i->first + i->second.bytes;
}

// Images.

template <class T> T read(const char *at) {
    T x;
    memcpy(&x, at, sizeof x);
    return x;
}

// describe reads the attributes of one kernel, a section .nv.info.<kernel>.
Described describe(const char *at, const char *end) {
    enum { MAX_THREADS = 0x05, KPARAM_INFO = 0x17, SIZED = 0x04 };
    std::map<unsigned, size_t> sizes;
    Described d;
    while (at + 4 <= end) {
        const unsigned char format = at[0], attribute = at[1];
        const unsigned value = read<uint16_t>(at + 2);
        const char *data = at + 4;
        at = data;
        if (format != SIZED) {
            continue;
        }
        at += value;
        if (attribute == KPARAM_INFO && value >= 12) {
            sizes[read<uint16_t>(data + 4)] = read<uint32_t>(data + 8) >> 18;
        } else if (attribute == MAX_THREADS && value >= 4) {
            d.threads = read<uint32_t>(data);
        }
    }
    for (auto &s : sizes) {
        d.sizes.push_back(s.second);
    }
    return d;
}

CUresult load_cubin(Module &m, const char *image) {
    const auto header = read<Elf64_Ehdr>(image);
    const unsigned sm = header.e_flags & 0xff;
    if (sm / 10 != unsigned(major) || sm % 10 > unsigned(minor)) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    std::vector<Elf64_Shdr> sections;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        sections.push_back(read<Elf64_Shdr>(image + header.e_shoff + i * header.e_shentsize));
    }
    const char *names = image + sections[header.e_shstrndx].sh_offset;
    std::map<std::string, size_t> shared;
    for (auto &s : sections) {
        const std::string name = names + s.sh_name;
        if (name.rfind(".nv.info.", 0) == 0) {
            const char *at = image + s.sh_offset;
            m.described[name.substr(9)] = describe(at, at + s.sh_size);
        } else if (name.rfind(".nv.shared.", 0) == 0) {
            shared[name.substr(11)] = s.sh_size;
        }
    }
    for (auto &d : m.described) {
        d.second.shared = shared[d.first];
    }
    return CUDA_SUCCESS;
}

// load_ptx reads ".visible .entry name(" with a line ".param .u64 name_param_0," per parameter, and
// ".maxntid n, 1, 1".
CUresult load_ptx(Module &m, const std::string &text) {
    Described *d = nullptr;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        at = end + 1;
        char word[256];
        unsigned n;
        if (sscanf(line.c_str(), ".visible .entry %255[^(]", word) == 1) {
            d = &m.described[word];
        } else if (d && sscanf(line.c_str(), " .param .%255[a-z0-9]", word) == 1) {
            const std::string type = word;
            d->sizes.push_back(std::stoul(type.substr(1)) / 8);
        } else if (d && sscanf(line.c_str(), ".maxntid %u", &n) == 1) {
            d->threads = n;
        } else if (line == "{") {
            d = nullptr; // what follows is the body
        }
    }
    return m.described.empty() ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}

} // namespace

extern "C" {

// What tests set, and ask for.

__attribute__((visibility("default"))) void emulation_order(int o) { order = Order(o); }
__attribute__((visibility("default"))) void emulation_memory(size_t bytes) { memory = bytes; }
__attribute__((visibility("default"))) void emulation_capability(int of_major, int of_minor) {
    major = of_major;
    minor = of_minor;
}
// emulation_fail makes the n-th call of a function from now on fail.
__attribute__((visibility("default"))) void emulation_fail(const char *function, long n, int code) {
    std::lock_guard<std::recursive_mutex> held(lock);
    failing = function;
    failing_after = n;
    failing_with = CUresult(code);
}
__attribute__((visibility("default"))) size_t emulation_used() { return used; }
__attribute__((visibility("default"))) 

CUresult cuInit(unsigned) {
    const auto number = [](const char *name, long otherwise) {
        const char *s = getenv(name);
        return s ? atol(s) : otherwise;
    };
    order = Order(number("GIANTSTREAM_EMULATED_ORDER", 0));
    const long sm = number("GIANTSTREAM_EMULATED_SM", 90);
    major = sm / 10;
    minor = sm % 10;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
    *version = 11080;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = 0;
    return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int room, CUdevice) {
    static const char *orders[] = {"forward", "backward", "shuffled"};
    snprintf(name, room, "emulated sm_%d%d, threads %s", major, minor, orders[int(order)]);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice) {
    *bytes = memory;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = major; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = minor; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; return CUDA_SUCCESS;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
    std::lock_guard<std::recursive_mutex> held(lock);
    references++;
    *context = reinterpret_cast<CUcontext>(&primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice) {
    std::lock_guard<std::recursive_mutex> held(lock);
    if (references == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--references == 0) {
        finish();
        while (!allocations.empty()) {
            release(allocations.begin());
        }
        modules.clear();
        lost = CUDA_SUCCESS;
        failing.clear();
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    current = context != nullptr;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = current ? reinterpret_cast<CUcontext>(&primary) : nullptr;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
    ENTER
    finish();
    return lost;
}

CUresult cuStreamCreate(CUstream *stream, unsigned) {
    ENTER
    *stream = reinterpret_cast<CUstream>(&only);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream) {
    ENTER
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream) {
    ENTER
    finish();
    return lost;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    ENTER
    auto m = std::make_unique<Module>();
    const auto bytes = static_cast<const char *>(image);
    const CUresult code = memcmp(bytes, ELFMAG, SELFMAG) == 0 ? load_cubin(*m, bytes) : load_ptx(*m, bytes);
    if (code != CUDA_SUCCESS) {
        return code;
    }
    *module = reinterpret_cast<CUmodule>(m.get());
    modules.push_back(std::move(m));
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule) {
    ENTER
    finish();
    return lost;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    ENTER
    auto m = reinterpret_cast<Module *>(module);
    auto described = m->described.find(name);
    if (described == m->described.end()) {
        return CUDA_ERROR_NOT_FOUND;
    }
    for (auto &k : kernels()) {
        if (k.name != name) {
            continue;
        }
        if (k.sizes != described->second.sizes || described->second.shared > STATIC_SHARED) {
            fprintf(stderr, "emulated device: the image is older than the source of kernel %s, or too large\n", name);
            return CUDA_ERROR_INVALID_IMAGE;
        }
        auto &f = m->functions[name];
        f.reset(new Function{&k, described->second});
        *function = reinterpret_cast<CUfunction>(f.get());
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream, void **parameters,
                        void **extra) {
    ENTER
    auto f = reinterpret_cast<Function *>(function);
    const size_t threads = size_t(block_x) * block_y * block_z;
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || threads == 0 || grid_x > 0x7fffffff || grid_y > 65535 ||
        grid_z > 65535 || threads > f->described.threads || shared != 0 || extra) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // The arguments may change as soon as this returns.
    auto values = std::make_shared<std::vector<uint64_t>>();
    for (size_t i = 0; i < f->described.sizes.size(); i++) {
        uint64_t v = 0xa5a5a5a5a5a5a5a5;
        memcpy(&v, parameters[i], f->described.sizes[i]);
        values->push_back(v);
    }
    pending.push_back([=] {
        std::vector<void *> arguments;
        for (auto &v : *values) {
            arguments.push_back(&v);
        }
        const std::string wrong =
            run(*f->kernel, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, arguments.data(), order);
        if (!wrong.empty()) {
            lose(CUDA_ERROR_ILLEGAL_ADDRESS, wrong);
        }
    });
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *free, size_t *total) {
    ENTER
    *free = memory - std::min(used, memory);
    *total = memory;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes) {
    ENTER
    if (bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    addresses();
    // The end lies as close before a page that cannot be touched as the alignment allows.
    const size_t aligned = (bytes + 255) / 256 * 256, room = (aligned + PAGE - 1) / PAGE * PAGE + PAGE;
    if (used + bytes > memory) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (auto space = spaces.begin(); space != spaces.end(); ++space) {
        if (space->second < room) {
            continue;
        }
        const uintptr_t pages = space->first;
        if (space->second > room) {
            spaces[pages + room] = space->second - room;
        }
        spaces.erase(pages);
        if (mprotect(reinterpret_cast<void *>(pages), room - PAGE, PROT_READ | PROT_WRITE) != 0) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        memset(reinterpret_cast<void *>(pages), 0xff, room - PAGE);
        *at = pages + room - PAGE - aligned;
        allocations[*at] = {bytes, room, pages};
        used += bytes;
        check::allocated(*at, bytes);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree(CUdeviceptr at) {
    ENTER
    finish();
    auto i = allocations.find(at);
    if (i == allocations.end()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    release(i);
    return lost;
}

// Copies from pageable memory are staged before they return.
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream) {
    ENTER
    if (!inside(to, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto begin = static_cast<const char *>(from);
    auto staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
    pending.push_back([=] {
        memcpy(reinterpret_cast<void *>(to), staged->data(), bytes);
        check::written(to, bytes);
    });
    return CUDA_SUCCESS;
}

// Copies to pageable memory return when they are done.
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream) {
    ENTER
    if (!inside(from, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    finish();
    if (lost == CUDA_SUCCESS) {
        memcpy(to, reinterpret_cast<void *>(from), bytes);
    }
    return lost;
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
    ENTER
    if (!inside(to, bytes) || !inside(from, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pending.push_back([=] {
        memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
        check::written(to, bytes);
    });
    return CUDA_SUCCESS;
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream) {
    ENTER
    if (!inside(to, 4 * n)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pending.push_back([=] {
        std::fill_n(reinterpret_cast<unsigned *>(to), n, value);
        check::written(to, 4 * n);
    });
    return CUDA_SUCCESS;
}

} // extern "C"
