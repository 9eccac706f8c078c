#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

// Kernel is one that was compiled for the processor.
struct Kernel {
    std::string name;
    std::vector<size_t> sizes; // of its arguments, in bytes
    std::function<void(void **arguments)> call;
};

const std::vector<Kernel> &kernels();
