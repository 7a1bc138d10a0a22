// Splits rows of queries, keys and values: biases, norms of heads, rotation, and the write to the cache.
#include "card.cuh"

// Grid (rows, heads + 2 kv_heads), a block for each head. Queries stay in 32 bits; keys and values go to the
// row's text and position in the cache [texts, kv_heads, context, size]. Pairs (i, i + size / 2) are rotated,
// after the norm if there is one.
template <typename T>
DEVICE void heads(const Inputs* in, const float* qkv, const T* bias, const float* query_norm,
                  const float* key_norm, const float* cosines, const float* sines, float* queries, T* keys,
                  T* values, int heads, int kv_heads, int size, int context, float epsilon) {
  const uint32_t row = blockIdx.x;
  if (row >= in->count) return;
  const int head = blockIdx.y, half = size / 2;
  const uint32_t position = in->positions[row];
  const float* from = qkv + ((size_t)row * (heads + 2 * kv_heads) + head) * size;
  if (bias) bias += (size_t)head * size;
  const size_t cache = (size_t)in->texts[row] * kv_heads * context * size;
  keys += cache;
  values += cache;
  if (head >= heads + kv_heads) {
    T* to = values + ((size_t)(head - heads - kv_heads) * context + position) * size;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      to[i] = narrow<T>(from[i] + (bias ? wide(bias[i]) : 0.f));
    }
    return;
  }
  const float* weight = head < heads ? query_norm : key_norm;
  float scale = 1.f;
  if (weight) {
    float squares = 0.f;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      const float v = from[i] + (bias ? wide(bias[i]) : 0.f);
      squares += v * v;
    }
    scale = rsqrtf(block_sum(squares) / size + epsilon);
  }
  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    float a = from[i] + (bias ? wide(bias[i]) : 0.f);
    float b = from[i + half] + (bias ? wide(bias[i + half]) : 0.f);
    if (weight) {
      a = a * scale * weight[i];
      b = b * scale * weight[i + half];
    }
    const float c = cosines[(size_t)position * half + i], s = sines[(size_t)position * half + i];
    const float x = a * c - b * s, y = a * s + b * c;
    if (head < heads) {
      float* to = queries + ((size_t)row * heads + head) * size;
      to[i] = x;
      to[i + half] = y;
    } else {
      T* to = keys + ((size_t)(head - heads) * context + position) * size;
      to[i] = narrow<T>(x);
      to[i + half] = narrow<T>(y);
    }
  }
}

#define HEADS(NAME, T) \
  KERNEL(128) \
  heads_##NAME(const Inputs* in, const float* qkv, const T* bias, const float* query_norm, \
               const float* key_norm, const float* cosines, const float* sines, float* queries, T* keys, \
               T* values, int count, int kv_count, int size, int context, float epsilon) { \
    heads<T>(in, qkv, bias, query_norm, key_norm, cosines, sines, queries, keys, values, count, kv_count, \
             size, context, epsilon); \
  }
FOR_NUMBERS(HEADS)
