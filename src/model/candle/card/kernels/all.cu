// All kernels, as one module.
#include "stream.cu"

#include "heads.cu"

#include "attention.cu"

#include "choice.cu"
