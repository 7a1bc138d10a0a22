// All kernels, as one module.
#include "stream.cu"

#include "heads.cu"

#include "attention.cu"

#include "blocks.cu"

#include "choice.cu"
