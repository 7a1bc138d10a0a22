// A product for passes over one row: bound by reading the weights once.
#include "card.cuh"

// y[o] = weights[o, :] . x, a warp for each output; weights are [outputs, inputs] by rows.
template <typename T> DEVICE void single(const T* weights, const T* x, float* y, int inputs, int outputs) {
  constexpr int EACH = 8;
  const int output = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (output >= outputs) return;
  weights += (size_t)output * inputs;
  float sum = 0.f;
  // Rows of other lengths do not begin at multiples of 16 bytes.
  const int packed = inputs % EACH == 0 ? inputs : 0;
  for (int i = lane * EACH; i < packed; i += 32 * EACH) {
    float w[EACH], v[EACH];
    load8(weights + i, w);
    load8(x + i, v);
    UNROLL
    for (int e = 0; e < EACH; e++) sum += w[e] * v[e];
  }
  for (int i = packed + lane; i < inputs; i += 32) sum += wide(weights[i]) * wide(x[i]);
  sum = warp_sum(sum);
  if (lane == 0) y[output] = sum;
}

#define SINGLE(NAME, T) \
  KERNEL(128) single_##NAME(const T* weights, const T* x, float* y, int inputs, int outputs) { \
    single<T>(weights, x, y, inputs, outputs); \
  }
FOR_NUMBERS(SINGLE)
