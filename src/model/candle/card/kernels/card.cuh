// What all kernels share: number formats, sums over a block, and the inputs of a pass.
//
// Compiled by nvcc for cards, and by any C++ compiler with host/emulator.h, for tests without one.
//
// Invariant: a row of a pass does not depend on its neighbours. A block works for one row, splits of keys are
// by that row's own length, and sums have an order that only sizes decide.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#define KERNEL(THREADS) extern "C" __global__ void __launch_bounds__(THREADS)
#define DEVICE __device__ __forceinline__
#define SHARED __shared__
#define UNROLL _Pragma("unroll")
typedef __nv_bfloat16 bf16_t;
typedef __half f16_t;
DEVICE float wide(bf16_t x) { return __bfloat162float(x); }
DEVICE float wide(f16_t x) { return __half2float(x); }
template <typename T> DEVICE T narrow(float x);
template <> DEVICE bf16_t narrow<bf16_t>(float x) { return __float2bfloat16(x); }
template <> DEVICE f16_t narrow<f16_t>(float x) { return __float2half(x); }
#else
#include "host/emulator.h"
#endif

DEVICE float wide(float x) { return x; }
template <> DEVICE float narrow<float>(float x) { return x; }

// X(NAME, TYPE) for each number format of weights, keys and values.
#define FOR_NUMBERS(X) X(f32, float) X(f16, f16_t) X(bf16, bf16_t)

// Rows of the widest pass.
constexpr int WIDTH = 16;

// What a pass is over, on the card so that a captured graph reads it anew: how many rows count, then for each
// row a token, its position in its text, and the text. Rows past the count are padding: kernels of rows skip
// them, products do not.
struct Inputs {
  uint32_t count;
  uint32_t tokens[WIDTH];
  uint32_t positions[WIDTH];
  uint32_t texts[WIDTH];
};

// Eight numbers from an address that is a multiple of their size in bytes (16 or 32).
template <typename T> DEVICE void load8(const T* from, float* to) {
  struct alignas(16) Words { uint32_t word[4]; };
  constexpr int COUNT = sizeof(T) / 2;
  union Packed {
    Words words[COUNT];
    T numbers[8];
    DEVICE Packed() {}
  } packed;
  UNROLL
  for (int i = 0; i < COUNT; i++) packed.words[i] = reinterpret_cast<const Words*>(from)[i];
  UNROLL
  for (int i = 0; i < 8; i++) to[i] = wide(packed.numbers[i]);
}

// The sum over a warp, in every lane: a butterfly, so all lanes add in the same order.
DEVICE float warp_sum(float x) {
  UNROLL
  for (int o = 16; o > 0; o >>= 1) x += __shfl_xor_sync(0xffffffffu, x, o);
  return x;
}

// The sum over a block of whole warps, in every thread.
DEVICE float block_sum(float x) {
  SHARED float parts[32];
  const int warps = blockDim.x / 32;
  x = warp_sum(x);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  float sum = 0.f;
  for (int i = 0; i < warps; i++) sum += parts[i];
  // So that a later sum may use the same memory.
  __syncthreads();
  return sum;
}

// The keys that a row at `position` sees, and how they are split over blocks: by its own length alone.
struct Split {
  int first, length, chunk, used;
};
DEVICE Split split_keys(uint32_t position, int window, int splits) {
  Split s;
  s.length = (int)position + 1;
  s.first = window > 0 && s.length > window ? s.length - window : 0;
  const int seen = s.length - s.first;
  s.chunk = (seen + splits - 1) / splits;
  if (s.chunk < 32) s.chunk = 32;
  s.used = (seen + s.chunk - 1) / s.chunk;
  return s;
}
