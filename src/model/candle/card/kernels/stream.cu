// The stream between layers: embedding, norms and the gate. It is kept in 32 bits.
#include "card.cuh"

// x[row] = table[token of row]. A block for each row.
template <typename T> DEVICE void embed(const Inputs* in, const T* table, float* x, int hidden) {
  const uint32_t row = blockIdx.x;
  if (row >= in->count) return;
  const T* from = table + (size_t)in->tokens[row] * hidden;
  float* to = x + (size_t)row * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) to[i] = wide(from[i]);
}

// x[row] += delta[row] + bias, each if there is one; out[row] = x[row] / rms(x[row]) * weight. A block for
// each row.
template <typename T>
DEVICE void norm(const Inputs* in, float* x, const float* delta, const T* bias, const float* weight, T* out,
                 int hidden, float epsilon) {
  const uint32_t row = blockIdx.x;
  if (row >= in->count) return;
  x += (size_t)row * hidden;
  out += (size_t)row * hidden;
  if (delta) delta += (size_t)row * hidden;
  // The first numbers of a thread stay in registers, and all their loads are under way together.
  constexpr int HELD = 8;
  float v[HELD], w[HELD], d[HELD], squares = 0.f;
  UNROLL
  for (int u = 0; u < HELD; u++) {
    const int i = threadIdx.x + u * blockDim.x;
    v[u] = i < hidden ? x[i] : 0.f;
    w[u] = i < hidden ? weight[i] : 0.f;
    d[u] = delta && i < hidden ? delta[i] : 0.f;
  }
  if (delta && bias) {
    UNROLL
    for (int u = 0; u < HELD; u++) {
      const int i = threadIdx.x + u * blockDim.x;
      d[u] += i < hidden ? wide(bias[i]) : 0.f;
    }
  }
  UNROLL
  for (int u = 0; u < HELD; u++) {
    const int i = threadIdx.x + u * blockDim.x;
    v[u] += d[u];
    if (delta && i < hidden) x[i] = v[u];
    squares += v[u] * v[u];
  }
  const int rest = HELD * blockDim.x;
  for (int i = rest + threadIdx.x; i < hidden; i += blockDim.x) {
    float more = x[i];
    if (delta) {
      float change = delta[i];
      if (bias) change += wide(bias[i]);
      more += change;
      x[i] = more;
    }
    squares += more * more;
  }
  const float scale = rsqrtf(block_sum(squares) / hidden + epsilon);
  UNROLL
  for (int u = 0; u < HELD; u++) {
    const int i = threadIdx.x + u * blockDim.x;
    if (i < hidden) out[i] = narrow<T>(v[u] * scale * w[u]);
  }
  for (int i = rest + threadIdx.x; i < hidden; i += blockDim.x) out[i] = narrow<T>(x[i] * scale * weight[i]);
}

// out[row] = silu(gate) * up, of rows [gate, up], each plus its bias if there is one. Grid (blocks, rows).
template <typename T>
DEVICE void gate(const Inputs* in, const float* rows, const T* bias, T* out, int size) {
  const uint32_t row = blockIdx.y;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= in->count || i >= size) return;
  const float* from = rows + (size_t)row * 2 * size;
  float g = from[i], u = from[size + i];
  if (bias) {
    g += wide(bias[i]);
    u += wide(bias[size + i]);
  }
  out[(size_t)row * size + i] = narrow<T>(g / (1.f + expf(-g)) * u);
}

#define STREAM(NAME, T) \
  KERNEL(256) embed_##NAME(const Inputs* in, const T* table, float* x, int hidden) { \
    embed<T>(in, table, x, hidden); \
  } \
  KERNEL(512) \
  norm_##NAME(const Inputs* in, float* x, const float* delta, const T* bias, const float* weight, T* out, \
              int hidden, float epsilon) { \
    norm<T>(in, x, delta, bias, weight, out, hidden, epsilon); \
  } \
  KERNEL(256) gate_##NAME(const Inputs* in, const float* rows, const T* bias, T* out, int size) { \
    gate<T>(in, rows, bias, out, size); \
  }
FOR_NUMBERS(STREAM)
