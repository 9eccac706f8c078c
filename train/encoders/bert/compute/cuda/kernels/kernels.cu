// All kernels, as one program.
#include "attention.cu"
#include "elements.cu"
#include "product.cu"
#include "rows.cu"
#include "tensor.cu"
