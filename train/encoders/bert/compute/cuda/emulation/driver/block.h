#pragma once

#include <string>

#include "kernel.h"

struct Dimensions {
    unsigned x, y, z;
};

// Orders in which threads and blocks run.
enum class Order { forward, backward, shuffled };

// run runs a grid of blocks of a kernel. It returns what is wrong with it, empty if nothing is.
std::string run(const Kernel &kernel, Dimensions grid, Dimensions block, void **arguments, Order order);
