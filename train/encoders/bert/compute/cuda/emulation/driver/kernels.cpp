// The kernels, compiled for the processor. -include cuda.h comes first, and kernels.inc, made from
// the sources, has KERNEL(name) for each of them.
#include "kernels.cu"

#include "kernel.h"

template <class... A, size_t... I> static void call(void (*f)(A...), void **arguments, std::index_sequence<I...>) {
    f(*static_cast<A *>(arguments[I])...);
}

template <class... A> static Kernel describe(const char *name, void (*f)(A...)) {
    return {name,
            {sizeof(A)...},
            [f](void **arguments) { call(f, arguments, std::index_sequence_for<A...>{}); }};
}

const std::vector<Kernel> &kernels() {
    static const std::vector<Kernel> all = {
#define KERNEL(name) describe(#name, name),
#include "kernels.inc"
    };
    return all;
}
