// What all kernels share: number formats, sums over a block, and the inputs of a pass.
//
// Compiled by nvcc for cards, and by any C++ compiler with host/emulator.h, for tests without one.
//
// Invariant: a row of a pass does not depend on its neighbours. A block works for one row, or for several by
// tensor cores, whose rows are apart; splits of keys lie at fixed places, and sums have an order that only
// sizes and places decide.
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

// Two numbers of bf16, less another one.
DEVICE uint32_t less(uint32_t pair, float other) {
  union Numbers {
    uint32_t word;
    __nv_bfloat162 both;
    DEVICE Numbers() {}
  } numbers;
  numbers.word = pair;
  numbers.both = __hsub2(numbers.both, __float2bfloat162_rn(other));
  return numbers.word;
}

// sums += left * right, of tiles that the lanes of a warp share: 16 rows of 16 numbers of 16 bits, 16 rows
// of 8, and sums of 16 rows of 8 in 32 bits (m16n8k16 of PTX). A lane 4 g + t has, of the left tile,
// columns 2 t and 2 t + 1 of the rows g and g + 8, then columns 2 t + 8 and 2 t + 9 of both; of the right
// one the same as rows of the column g; and of the sums columns 2 t and 2 t + 1 of the row g, then of g +
// 8.
template <typename T> DEVICE void tensor_product(float* sums, const uint32_t* left, const uint32_t* right);
#define TENSOR_PRODUCT(NAME, T) \
  template <> DEVICE void tensor_product<T>(float* sums, const uint32_t* left, const uint32_t* right) { \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." NAME "." NAME ".f32 " \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) \
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1])); \
  }
TENSOR_PRODUCT("bf16", bf16_t)
TENSOR_PRODUCT("f16", f16_t)
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

// A word as a number, and back.
union Word {
  uint32_t bits;
  float number;
};
DEVICE float number_of(uint32_t bits) {
  Word word;
  word.bits = bits;
  return word.number;
}
DEVICE uint32_t word_of(float number) {
  Word word;
  word.number = number;
  return word.bits;
}

// COUNT words from an address that is a multiple of their size.
template <int COUNT> DEVICE void load_words(const void* from, uint32_t* to) {
  struct alignas(4 * COUNT) Words { uint32_t word[COUNT]; };
  const Words words = *static_cast<const Words*>(from);
  UNROLL
  for (int i = 0; i < COUNT; i++) to[i] = words.word[i];
}

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

// Two numbers of 16 bits, the first in the lower half.
template <typename T> union Pair {
  T numbers[2];
  uint32_t word;
  DEVICE Pair() {}
};

// Pairs of eight numbers of 32 bits, as sums of TERMS numbers of T each.
template <typename T, int TERMS> DEVICE void split_terms(float* numbers, uint32_t (*pairs)[4]) {
  UNROLL
  for (int term = 0; term < TERMS; term++) {
    UNROLL
    for (int i = 0; i < 4; i++) {
      Pair<T> pair;
      UNROLL
      for (int j = 0; j < 2; j++) {
        pair.numbers[j] = narrow<T>(numbers[2 * i + j]);
        numbers[2 * i + j] -= wide(pair.numbers[j]);
      }
      pairs[term][i] = pair.word;
    }
  }
}

// Keys that a block looks at: those from a multiple of SPLIT on. After 4,000 tokens eight key heads are then
// 128 blocks, as many as a large card has processors; fewer keys would leave more parts to add up.
constexpr int SPLIT = 256;

// The first key that a row at `position` sees; the last one is its own.
DEVICE int first_key(int position, int window) {
  return window > 0 && position >= window ? position + 1 - window : 0;
}
