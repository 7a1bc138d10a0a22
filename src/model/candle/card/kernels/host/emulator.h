// What the kernels need of CUDA, on the host: number formats, the place of a thread, barriers and shuffles.
//
// Each thread of a block is a fiber; all fibers of a block run on one thread of the host, one after the
// other, each until it waits for others. So barriers and shuffles are kept, and a kernel whose threads come
// to different barriers is found out. What this does not show: races between barriers (blocks can be run with
// their threads in another order, which finds many), memory that another block writes, and how long anything
// takes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define KERNEL(THREADS) static void
#define DEVICE inline
// All fibers of a block share a host thread.
#define SHARED static thread_local
#define UNROLL

namespace emulator {

struct Index {
  unsigned x, y, z;
};

extern thread_local Index thread, block, block_size, grid_size;

// Waits until all threads of the block are here.
void barrier();
// What the lane `distance` apart (exclusive or) has given.
uint32_t exchange(uint32_t value, int distance);
// What all lanes of the warp have given: four words and two each. Valid until the next exchange but one.
struct Fragment {
  uint32_t left[4], right[2];
};
const Fragment* exchange_all(const Fragment& own);

}  // namespace emulator

#define threadIdx (emulator::thread)
#define blockIdx (emulator::block)
#define blockDim (emulator::block_size)
#define gridDim (emulator::grid_size)

inline void __syncthreads() { emulator::barrier(); }

template <typename T> inline T __shfl_xor_sync(uint32_t, T value, int distance) {
  static_assert(sizeof(T) == 4, "one word is exchanged");
  uint32_t word;
  std::memcpy(&word, &value, 4);
  word = emulator::exchange(word, distance);
  std::memcpy(&value, &word, 4);
  return value;
}

// Four of the eight bytes of two words.
inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = (uint64_t)high << 32 | low;
  uint32_t word = 0;
  for (int i = 0; i < 4; i++) word |= (uint32_t)(bytes >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i;
  return word;
}

// Fibers give way nowhere in between.
inline uint32_t atomicAdd(uint32_t* at, uint32_t more) {
  const uint32_t before = *at;
  *at += more;
  return before;
}

inline float rsqrtf(float x) { return 1.f / std::sqrt(x); }

struct bf16_t {
  uint16_t bits;
};
struct f16_t {
  uint16_t bits;
};

inline float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline uint32_t to_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

inline float wide(bf16_t x) { return from_bits((uint32_t)x.bits << 16); }

inline float wide(f16_t x) {
  const uint32_t sign = (uint32_t)(x.bits & 0x8000) << 16, exponent = x.bits >> 10 & 31, rest = x.bits & 1023;
  if (exponent == 31) return from_bits(sign | 0x7f800000 | rest << 13);
  if (exponent == 0) return std::copysign(std::ldexp((float)rest, -24), from_bits(sign | 0x3f800000));
  return from_bits(sign | (exponent + 112) << 23 | rest << 13);
}

// As card.cuh says; a sum is that of its products in order.
template <typename T> void tensor_product(float* sums, const uint32_t* left, const uint32_t* right) {
  const emulator::Fragment own = {{left[0], left[1], left[2], left[3]}, {right[0], right[1]}};
  const emulator::Fragment* lanes = emulator::exchange_all(own);
  const int lane = (int)(threadIdx.x % 32);
  float rows[2][16], columns[2][16];
  for (int i = 0; i < 16; i++) {
    // The numbers at place i of two rows and of two columns, as the lanes have them.
    const int other = i % 8 / 2, high = i / 8, shift = i % 2 * 16;
    for (int j = 0; j < 2; j++) {
      rows[j][i] = wide(T{(uint16_t)(lanes[lane / 4 * 4 + other].left[j + 2 * high] >> shift)});
      columns[j][i] = wide(T{(uint16_t)(lanes[(lane % 4 * 2 + j) * 4 + other].right[high] >> shift)});
    }
  }
  for (int sum = 0; sum < 4; sum++) {
    for (int i = 0; i < 16; i++) sums[sum] += rows[sum / 2][i] * columns[sum % 2][i];
  }
}

template <typename T> T narrow(float x);

// To nearest, of two as near the even one.
template <> inline bf16_t narrow<bf16_t>(float x) {
  uint32_t bits = to_bits(x);
  if (x != x) return {(uint16_t)(bits >> 16 | 0x40)};
  bits += 0x7fff + (bits >> 16 & 1);
  return {(uint16_t)(bits >> 16)};
}

template <> inline f16_t narrow<f16_t>(float x) {
  const uint32_t bits = to_bits(x), sign = bits >> 16 & 0x8000;
  const float size = std::fabs(x);
  if (x != x) return {(uint16_t)(sign | 0x7e00)};
  if (size >= 65520.f) return {(uint16_t)(sign | 0x7c00)};
  // Numbers below 2^-14 are multiples of 2^-24; nearbyint rounds halves to even.
  if (size < 6.103515625e-05f) return {(uint16_t)(sign | (uint32_t)std::nearbyint(std::ldexp(size, 24)))};
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return {(uint16_t)(sign | (rounded - (112u << 23)) >> 13)};
}

inline uint32_t less(uint32_t pair, float other) {
  const float low = from_bits(pair << 16) - other, high = from_bits(pair & 0xffff0000u) - other;
  return (uint32_t)narrow<bf16_t>(high).bits << 16 | narrow<bf16_t>(low).bits;
}
