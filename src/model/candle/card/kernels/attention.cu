// Attention with keys split over blocks (flash decoding): scores, softmax and sums in 32 bits.
//
// A block takes one row, one head and one split of the keys, and leaves its numerators, its largest score and
// its denominator; `combine` adds the splits up in their order.
#include "card.cuh"

constexpr int WARPS = 4, LARGEST_HEAD = 256, AT_ONCE = 4;
// A score that no key has.
constexpr float NEVER = -1e30f;

// LANES lanes share a key, each with EACH of its numbers: eight neighbours if PACKED (head sizes of 8 LANES),
// otherwise every LANES-th one. A warp looks at 32 / LANES keys at a time.
template <typename T, int LANES, int EACH, bool PACKED> struct Lane {
  int lane, size;

  DEVICE int number(int e) const { return PACKED ? lane * EACH + e : e * LANES + lane; }

  DEVICE void load(const T* from, float* to) const {
    if (PACKED) {
      load8(from + lane * EACH, to);
    } else {
      UNROLL
      for (int e = 0; e < EACH; e++) to[e] = number(e) < size ? wide(from[number(e)]) : 0.f;
    }
  }
};

// A softmax in the making: the largest score so far, and sums of weights and of weighted values relative to
// it.
template <int EACH> struct Softmax {
  float largest, sum, values[EACH];

  DEVICE Softmax() : largest(NEVER), sum(0.f) {
    UNROLL
    for (int e = 0; e < EACH; e++) values[e] = 0.f;
  }

  // Makes `score` the one that sums are relative to.
  DEVICE void rescale(float score) {
    const float factor = expf(largest - score);
    largest = score;
    sum *= factor;
    UNROLL
    for (int e = 0; e < EACH; e++) values[e] *= factor;
  }

  // Adds the one that the lane `distance` apart has.
  DEVICE void merge(int distance) {
    const float other = __shfl_xor_sync(0xffffffffu, largest, distance);
    rescale(fmaxf(largest, other));
    // Both lanes now have the same largest score, and a sum of two terms does not depend on their order.
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    UNROLL
    for (int e = 0; e < EACH; e++) values[e] += __shfl_xor_sync(0xffffffffu, values[e], distance);
  }
};

template <typename T, int LANES, int EACH, bool PACKED>
DEVICE void attention(const Inputs* in, const float* queries, const T* keys, const T* values, float* parts,
                      int heads, int kv_heads, int size, int context, int window, float scale) {
  constexpr int GROUPS = 32 / LANES, STEP = WARPS * GROUPS;
  const uint32_t row = blockIdx.x;
  if (row >= in->count) return;
  const int head = blockIdx.y, splits = gridDim.z;
  const Split split = split_keys(in->positions[row], window, splits);
  if ((int)blockIdx.z >= split.used) return;
  const int from = split.first + blockIdx.z * split.chunk;
  const int to = from + split.chunk < split.length ? from + split.chunk : split.length;
  const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / LANES;
  const Lane<T, LANES, EACH, PACKED> own = {(int)threadIdx.x % LANES, size};
  const size_t own_head = (size_t)in->texts[row] * kv_heads + head / (heads / kv_heads);
  const size_t start = own_head * context * size;
  keys += start;
  values += start;
  float query[EACH];
  UNROLL
  for (int e = 0; e < EACH; e++) {
    const int i = own.number(e);
    query[e] = i < size ? queries[((size_t)row * heads + head) * size + i] * scale : 0.f;
  }
  Softmax<EACH> softmax;
  for (int base = from + warp * GROUPS; base < to; base += STEP * AT_ONCE) {
    float scores[AT_ONCE], value[AT_ONCE][EACH], numbers[AT_ONCE][EACH], largest = softmax.largest;
    // All loads before the first exchange, and none behind a branch, so that they are under way together:
    // past the last key the last one is read again.
    UNROLL
    for (int u = 0; u < AT_ONCE; u++) {
      const int key = base + u * STEP + group, from_key = key < to ? key : to - 1;
      own.load(keys + (size_t)from_key * size, numbers[u]);
      own.load(values + (size_t)from_key * size, value[u]);
    }
    UNROLL
    for (int u = 0; u < AT_ONCE; u++) {
      const int key = base + u * STEP + group;
      float product = 0.f;
      UNROLL
      for (int e = 0; e < EACH; e++) product += numbers[u][e] * query[e];
      UNROLL
      for (int o = LANES / 2; o > 0; o >>= 1) product += __shfl_xor_sync(0xffffffffu, product, o);
      scores[u] = key < to ? product : NEVER;
      largest = fmaxf(largest, scores[u]);
    }
    softmax.rescale(largest);
    UNROLL
    for (int u = 0; u < AT_ONCE; u++) {
      const float weight = base + u * STEP + group < to ? expf(scores[u] - largest) : 0.f;
      softmax.sum += weight;
      UNROLL
      for (int e = 0; e < EACH; e++) softmax.values[e] += weight * value[u][e];
    }
  }
  UNROLL
  for (int o = LANES; o < 32; o <<= 1) softmax.merge(o);

  SHARED float largest[WARPS], sums[WARPS], weighted[WARPS][LARGEST_HEAD];
  if (group == 0) {
    UNROLL
    for (int e = 0; e < EACH; e++) {
      if (own.number(e) < size) weighted[warp][own.number(e)] = softmax.values[e];
    }
    if (own.lane == 0) {
      largest[warp] = softmax.largest;
      sums[warp] = softmax.sum;
    }
  }
  __syncthreads();
  float* part = parts + (((size_t)row * heads + head) * splits + blockIdx.z) * (size + 2);
  float most = largest[0];
  for (int w = 1; w < WARPS; w++) most = fmaxf(most, largest[w]);
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    float sum = 0.f;
    for (int w = 0; w < WARPS; w++) sum += weighted[w][i] * expf(largest[w] - most);
    part[i] = sum;
  }
  if (threadIdx.x == 0) {
    float sum = 0.f;
    for (int w = 0; w < WARPS; w++) sum += sums[w] * expf(largest[w] - most);
    part[size] = most;
    part[size + 1] = sum;
  }
}

// Adds up what the splits of a row's head have left. Grid (rows, heads).
template <typename T>
DEVICE void combine(const Inputs* in, const float* parts, T* out, int size, int splits, int window) {
  const uint32_t row = blockIdx.x;
  if (row >= in->count) return;
  const size_t at = (size_t)row * gridDim.y + blockIdx.y;
  const int used = split_keys(in->positions[row], window, splits).used;
  parts += at * splits * (size + 2);
  float most = NEVER;
  for (int s = 0; s < used; s++) most = fmaxf(most, parts[(size_t)s * (size + 2) + size]);
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    float value = 0.f, sum = 0.f;
    for (int s = 0; s < used; s++) {
      const float* part = parts + (size_t)s * (size + 2);
      const float factor = expf(part[size] - most);
      value += part[i] * factor;
      sum += part[size + 1] * factor;
    }
    out[at * size + i] = narrow<T>(value / sum);
  }
}

#define ATTENTION_OF(KIND, NAME, T, LANES, EACH, PACKED) \
  KERNEL(128) \
  attention_##KIND##_##NAME(const Inputs* in, const float* queries, const T* keys, const T* values, \
                            float* parts, int heads, int kv_heads, int size, int context, int window, \
                            float scale) { \
    attention<T, LANES, EACH, PACKED>(in, queries, keys, values, parts, heads, kv_heads, size, context, \
                                      window, scale); \
  }
#define ATTENTION(NAME, T) \
  ATTENTION_OF(16, NAME, T, 2, 8, true) \
  ATTENTION_OF(32, NAME, T, 4, 8, true) \
  ATTENTION_OF(64, NAME, T, 8, 8, true) \
  ATTENTION_OF(128, NAME, T, 16, 8, true) \
  ATTENTION_OF(256, NAME, T, 32, 8, true) \
  ATTENTION_OF(any, NAME, T, 32, 8, false) \
  KERNEL(128) \
  combine_##NAME(const Inputs* in, const float* parts, T* out, int size, int splits, int window) { \
    combine<T>(in, parts, out, size, splits, window); \
  }
FOR_NUMBERS(ATTENTION)
