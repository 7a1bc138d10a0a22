// Attention with keys split over blocks (flash decoding): scores, softmax and sums in 32 bits.
//
// A block takes one head and one split of the keys, for one row or for all rows of a text, and leaves the
// numerators, the largest score and the denominator of each row; `combine` adds the splits up in their order.
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
  const int head = blockIdx.y, splits = gridDim.z, begin = blockIdx.z * SPLIT;
  const int length = in->positions[row] + 1, first = first_key(length - 1, window);
  const int from = first > begin ? first : begin;
  const int to = begin + SPLIT < length ? begin + SPLIT : length;
  if (from >= to) return;
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

// The keys of a split that rows of a text see: none if a row is of another text.
struct RowKeys {
  const Inputs* in;
  uint32_t text;
  int from, window;

  DEVICE int begin(int row) const {
    const int first = first_key((int)in->positions[row], window);
    return first > from ? first : from;
  }
  DEVICE int end(int row) const {
    if (row >= (int)in->count || in->texts[row] != text) return 0;
    const int length = (int)in->positions[row] + 1;
    return length < from + SPLIT ? length : from + SPLIT;
  }
};

// Attention of all rows of a text to a split of its keys, by tensor cores, for heads of 64, 128 or 256 numbers
// of 16 bits: keys and values are read once for all rows. Each of eight warps first makes the scores of 32
// keys, then sums an eighth of the numbers of all values. Queries and weights are sums of two numbers of T.
// Grid (heads, splits, texts).
template <typename T, int SIZE>
DEVICE void attention_rows(const Inputs* in, const float* queries, const T* keys, const T* values,
                           float* parts, int heads, int kv_heads, int context, int window, float scale) {
  constexpr int TURNS = 8, OWN = SPLIT / TURNS, TILES = OWN / 8, EACH = SIZE / 8 / TURNS;
  const int head = blockIdx.x, splits = gridDim.y, from = blockIdx.y * SPLIT, count = in->count;
  const int warp = threadIdx.x / 32, own = threadIdx.x % 4, group = threadIdx.x % 32 / 4;
  // The text is that of the first row that has no neighbour of its text before it, or the next such row.
  uint32_t text = in->texts[0];
  for (int row = 0, left = (int)blockIdx.z; left > 0; row++) {
    if (row + 1 >= count) return;
    text = in->texts[row + 1];
    bool is_new = true;
    for (int before = 0; before <= row; before++) is_new = is_new && in->texts[before] != text;
    left -= is_new ? 1 : 0;
  }
  // Of each row the keys that it sees here; none of rows of other texts.
  const RowKeys rows = {in, text, from, window};
  int last = -1;
  UNROLL
  for (int row = 0; row < WIDTH; row++) {
    if (rows.begin(row) < rows.end(row) && rows.end(row) - 1 > last) last = rows.end(row) - 1;
  }
  if (last < 0) return;
  const size_t start = ((size_t)text * kv_heads + head / (heads / kv_heads)) * context * SIZE;
  keys += start;
  values += start;
  const int mine[2] = {group, group + 8};

  // Scores of the two rows of a thread: two neighbours of each eight keys.
  const int base = from + warp * OWN;
  float scores[TILES][4] = {};
  UNROLL
  for (int chunk = 0; chunk < SIZE; chunk += 32) {
    uint32_t terms[2][2][4];
    UNROLL
    for (int i = 0; i < 2; i++) {
      float query[8];
      load8(queries + ((size_t)mine[i] * heads + head) * SIZE + chunk + 8 * own, query);
      UNROLL
      for (int e = 0; e < 8; e++) query[e] *= scale;
      split_terms<T, 2>(query, terms[i]);
    }
    UNROLL
    for (int tile = 0; tile < TILES; tile++) {
      // Past the last key that one is read again, and counts for nothing.
      const int key = base + 8 * tile + group < last ? base + 8 * tile + group : last;
      uint32_t right[4];
      load_words<4>(keys + (size_t)key * SIZE + chunk + 8 * own, right);
      UNROLL
      for (int half = 0; half < 4; half += 2) {
        UNROLL
        for (int term = 0; term < 2; term++) {
          const uint32_t *upper = terms[0][term] + half, *lower = terms[1][term] + half;
          const uint32_t left[4] = {upper[0], lower[0], upper[1], lower[1]};
          tensor_product<T>(scores[tile], left, right + half);
        }
      }
    }
  }
  SHARED float tops[TURNS][WIDTH], sums[TURNS][WIDTH];
  // Pairs of weights, and of what their first terms leave. Rows lie apart by four banks more than whole turns
  // of them.
  SHARED uint32_t weights[2][WIDTH][SPLIT / 2 + 4];
  float most[2];
  UNROLL
  for (int i = 0; i < 2; i++) {
    most[i] = NEVER;
    UNROLL
    for (int n = 0; n < 2 * TILES; n++) {
      const int key = base + n / 2 * 8 + 2 * own + n % 2;
      float& score = scores[n / 2][2 * i + n % 2];
      if (key < rows.begin(mine[i]) || key >= rows.end(mine[i])) score = NEVER;
      most[i] = fmaxf(most[i], score);
    }
    for (int o = 1; o < 4; o <<= 1) most[i] = fmaxf(most[i], __shfl_xor_sync(0xffffffffu, most[i], o));
    if (own == 0) tops[warp][mine[i]] = most[i];
  }
  __syncthreads();
  UNROLL
  for (int i = 0; i < 2; i++) {
    for (int turn = 0; turn < TURNS; turn++) most[i] = fmaxf(most[i], tops[turn][mine[i]]);
    float sum = 0.f;
    UNROLL
    for (int tile = 0; tile < TILES; tile++) {
      Pair<T> first, rest;
      UNROLL
      for (int j = 0; j < 2; j++) {
        const float score = scores[tile][2 * i + j], weight = score > NEVER ? expf(score - most[i]) : 0.f;
        sum += weight;
        first.numbers[j] = narrow<T>(weight);
        rest.numbers[j] = narrow<T>(weight - wide(first.numbers[j]));
      }
      const int at = warp * (OWN / 2) + 4 * tile + own;
      weights[0][mine[i]][at] = first.word;
      weights[1][mine[i]][at] = rest.word;
    }
    for (int o = 1; o < 4; o <<= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (own == 0) sums[warp][mine[i]] = sum;
  }
  __syncthreads();

  // Sums of values: of each eight numbers of a thread's column its EACH ones.
  float weighted[EACH][4] = {};
  const int column = warp * (SIZE / TURNS) + group * EACH;
  for (int seen = 0; from + seen <= last; seen += 16 * AT_ONCE) {
    Pair<T> right[AT_ONCE][EACH][2];
    UNROLL
    for (int u = 0; u < AT_ONCE; u++) {
      UNROLL
      for (int i = 0; i < 4; i++) {
        // Past the last key that one is read again, with a weight of zero.
        const int key = from + seen + 16 * u + 2 * own + i % 2 + i / 2 * 8;
        const T* value = values + (size_t)(key < last ? key : last) * SIZE + column;
        UNROLL
        for (int e = 0; e < EACH; e++) right[u][e][i / 2].numbers[i % 2] = value[e];
      }
    }
    UNROLL
    for (int u = 0; u < AT_ONCE; u++) {
      UNROLL
      for (int term = 0; term < 2; term++) {
        uint32_t left[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
          left[i] = weights[term][mine[i % 2]][seen / 2 + 8 * u + own + i / 2 * 4];
        }
        UNROLL
        for (int e = 0; e < EACH; e++) {
          const uint32_t words[2] = {right[u][e][0].word, right[u][e][1].word};
          tensor_product<T>(weighted[e], left, words);
        }
      }
    }
  }
  UNROLL
  for (int i = 0; i < 2; i++) {
    if (rows.begin(mine[i]) >= rows.end(mine[i])) continue;
    float* part = parts + (((size_t)mine[i] * heads + head) * splits + blockIdx.y) * (SIZE + 2);
    UNROLL
    for (int e = 0; e < EACH; e++) {
      UNROLL
      for (int j = 0; j < 2; j++) {
        part[warp * (SIZE / TURNS) + (2 * own + j) * EACH + e] = weighted[e][2 * i + j];
      }
    }
    if (warp == 0 && own == 0) {
      float sum = 0.f;
      for (int turn = 0; turn < TURNS; turn++) sum += sums[turn][mine[i]];
      part[SIZE] = most[i];
      part[SIZE + 1] = sum;
    }
  }
}

// Adds up what the splits of a row's head have left. Grid (rows, heads).
template <typename T>
DEVICE void combine(const Inputs* in, const float* parts, T* out, int size, int splits, int window) {
  const uint32_t row = blockIdx.x;
  if (row >= in->count) return;
  const size_t at = (size_t)row * gridDim.y + blockIdx.y;
  const int position = in->positions[row], first = first_key(position, window) / SPLIT;
  const int end = position / SPLIT + 1;
  parts += at * splits * (size + 2);
  float most = NEVER;
  for (int s = first; s < end; s++) most = fmaxf(most, parts[(size_t)s * (size + 2) + size]);
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    float value = 0.f, sum = 0.f;
    for (int s = first; s < end; s++) {
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
#define ATTENTION_ROWS(SIZE, NAME, T) \
  KERNEL(256) \
  attention_rows_##SIZE##_##NAME(const Inputs* in, const float* queries, const T* keys, const T* values, \
                                 float* parts, int heads, int kv_heads, int, int context, int window, \
                                 float scale) { \
    attention_rows<T, SIZE>(in, queries, keys, values, parts, heads, kv_heads, context, window, scale); \
  }
#define ATTENTION(NAME, T) \
  ATTENTION_OF(16, NAME, T, 2, 8, true) \
  ATTENTION_OF(32, NAME, T, 4, 8, true) \
  ATTENTION_OF(any, NAME, T, 32, 8, false) \
  KERNEL(128) \
  combine_##NAME(const Inputs* in, const float* parts, T* out, int size, int splits, int window) { \
    combine<T>(in, parts, out, size, splits, window); \
  }
FOR_NUMBERS(ATTENTION)
ATTENTION_OF(64, f32, float, 8, 8, true)
ATTENTION_OF(128, f32, float, 16, 8, true)
ATTENTION_OF(256, f32, float, 32, 8, true)
ATTENTION_ROWS(64, f16, f16_t)
ATTENTION_ROWS(128, f16, f16_t)
ATTENTION_ROWS(256, f16, f16_t)
ATTENTION_ROWS(64, bf16, bf16_t)
ATTENTION_ROWS(128, bf16, bf16_t)
ATTENTION_ROWS(256, bf16, bf16_t)
