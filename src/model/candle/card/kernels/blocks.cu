// Products with weights in ggml's blocks, by tensor cores, and rows of such a matrix.
//
// Quants are whole numbers that bf16 holds exactly, and inputs are sums of up to three numbers of bf16 (one
// if that is what they are), so that every product is exact. Sums of the 16 or 32 products that share a scale
// are made in 32 bits, and then scaled.
// Weights are the left factor: a thread then has the scales of the very outputs whose sums it has.
#include "card.cuh"

// Warps of a block, which share the weights of its outputs by turns; outputs of a block; weights that are
// multiplied together, a part.
constexpr int TURNS = 8, OUTPUTS = 32, PART = 32;
// A whole number below 2^23 in the lower bits of this float is the float of 2^23 plus it.
constexpr uint32_t WHOLE = 0x4b000000u;

// A whole number below 2^23.
DEVICE float whole(uint32_t number) { return number_of(WHOLE | number) - 8388608.f; }

DEVICE float half_of(uint32_t bits) {
  union Half {
    uint16_t bits;
    f16_t number;
    DEVICE Half() {}
  } half;
  half.bits = (uint16_t)bits;
  return wide(half.number);
}

// The upper halves of two floats: the floats in bf16, where their lower halves are zero.
DEVICE uint32_t upper_halves(float a, float b) { return __byte_perm(word_of(a), word_of(b), 0x7632); }

// Four bytes below 128, less `offset`, as pairs: one in the lower bits of 0x4300 is the number of bf16 of 128
// plus it.
DEVICE void pairs_of(uint32_t four, float offset, uint32_t* to) {
  to[0] = less(__byte_perm(four, 0x43434343u, 0x4140), 128.f + offset);
  to[1] = less(__byte_perm(four, 0x43434343u, 0x4342), 128.f + offset);
}

// What a quant counts: `scale` times itself, less `offset`.
struct Scale {
  float scale, offset;
};

// Rows of blocks of 256 weights: a scale and one of offsets in 16 bits, eight scales and eight offsets of six
// bits, if FIFTH 32 bytes with a bit of each part, and 256 quants of four bits. The lower halves of 32 bytes
// are a part, the upper ones the next.
template <bool FIFTH> struct WithOffsets {
  static constexpr int WEIGHTS = 256, BYTES = FIFTH ? 176 : 144;
  static constexpr bool OFFSETS = true, FINE = false;
  // The head of a block, of each 32 bytes eight, and the fifth bits of these.
  uint32_t head[4], quants[4][2], fifth[2];

  DEVICE static size_t row(int inputs) { return (size_t)inputs / WEIGHTS * BYTES; }

  // A thread's part of a block: `own` says which of the four threads of an output it is.
  DEVICE void load(const unsigned char* row, int block, int, int own) {
    const unsigned char* from = row + (size_t)block * BYTES;
    load_words<4>(from, head);
    if (FIFTH) load_words<2>(from + 16 + 8 * own, fifth);
    UNROLL
    for (int i = 0; i < 4; i++) load_words<2>(from + BYTES - 128 + 32 * i + 8 * own, quants[i]);
  }

  DEVICE uint32_t byte(int i) const { return head[1 + i / 4] >> 8 * (i % 4) & 255; }

  DEVICE Scale scale(int part, int) const {
    const uint32_t low = byte(part % 4), high = byte(part % 4 + 4), last = byte(part % 4 + 8);
    const uint32_t scale = part < 4 ? low & 63 : (last & 15) | low >> 6 << 4;
    const uint32_t offset = part < 4 ? high & 63 : last >> 4 | high >> 6 << 4;
    return {half_of(head[0]) * whole(scale), half_of(head[0] >> 16) * whole(offset)};
  }

  // Four quants of a part, in bytes.
  DEVICE uint32_t four(int part, int i) const {
    const uint32_t low = quants[part / 2][i] >> 4 * (part % 2) & 0x0f0f0f0fu;
    return FIFTH ? low | (fifth[i] >> part & 0x01010101u) << 4 : low;
  }

  // Eight neighbours of a part, in pairs.
  DEVICE void pairs(int part, uint32_t* to) const {
    UNROLL
    for (int i = 0; i < 2; i++) pairs_of(four(part, i), 0.f, to + 2 * i);
  }

  DEVICE static float number(const unsigned char* row, int i, int inputs) {
    WithOffsets block;
    const int part = i % WEIGHTS / PART, at = i % PART;
    block.load(row, i / WEIGHTS, inputs, at / 8);
    const Scale own = block.scale(part, 0);
    return own.scale * (float)(block.four(part, at % 8 / 4) >> 8 * (at % 4) & 255) - own.offset;
  }
};

// Rows of quants of eight bits, then a scale in 16 bits for each 32 of them; the row is filled up to whole 16
// bytes. Here 128 weights count as a block, of which the last may be in part.
struct Q8 {
  static constexpr int WEIGHTS = 128;
  static constexpr bool OFFSETS = false, FINE = false;
  uint32_t quants[4][2];
  uint16_t scales[4];

  DEVICE static size_t row(int inputs) { return ((size_t)inputs + inputs / PART * 2 + 15) / 16 * 16; }

  DEVICE void load(const unsigned char* row, int block, int inputs, int own) {
    UNROLL
    for (int i = 0; i < 4; i++) {
      // Behind the last 32 these are read again, and count for nothing.
      const int part = block * 4 + i < inputs / PART ? block * 4 + i : inputs / PART - 1;
      load_words<2>(row + (size_t)part * PART + 8 * own, quants[i]);
      scales[i] = *reinterpret_cast<const uint16_t*>(row + inputs + 2 * (size_t)part);
    }
  }

  DEVICE Scale scale(int part, int) const { return {half_of(scales[part]), 0.f}; }

  DEVICE void pairs(int part, uint32_t* to) const {
    UNROLL
    for (int i = 0; i < 2; i++) {
      const uint32_t four = quants[part][i] ^ 0x80808080u;
      float wide[4];
      UNROLL
      for (int j = 0; j < 4; j++) {
        wide[j] = number_of(__byte_perm(four, WHOLE, 0x7540 + j)) - (8388608.f + 128.f);
      }
      UNROLL
      for (int j = 0; j < 2; j++) to[2 * i + j] = upper_halves(wide[2 * j], wide[2 * j + 1]);
    }
  }

  DEVICE static float number(const unsigned char* row, int i, int inputs) {
    const uint16_t scale = *reinterpret_cast<const uint16_t*>(row + inputs + i / PART * 2);
    return half_of(scale) * (float)reinterpret_cast<const signed char*>(row)[i];
  }
};

// Rows of blocks of 256 weights in 208 bytes, then a scale in 16 bits for each of them; the row is filled up
// to whole 16 bytes. A block has the lower four bits of its quants, the upper two bits, and a scale of eight
// bits for each 16. Of 128 quants, parts 0 and 2 share bytes of lower bits, and so do 1 and 3; all four share
// those of upper bits.
struct Q6K {
  static constexpr int WEIGHTS = 256;
  static constexpr bool OFFSETS = false, FINE = true;
  // By halves of the block; then the first and the second part; then the first and the second four.
  uint32_t lower[2][2][2], upper[2][2], scales[4], all;

  DEVICE static size_t row(int inputs) { return ((size_t)inputs / WEIGHTS * 210 + 15) / 16 * 16; }

  DEVICE void load(const unsigned char* row, int block, int inputs, int own) {
    const unsigned char* from = row + (size_t)block * 208;
    load_words<4>(from + 192, scales);
    all = *reinterpret_cast<const uint16_t*>(row + (size_t)inputs / WEIGHTS * 208 + 2 * (size_t)block);
    UNROLL
    for (int half = 0; half < 2; half++) {
      UNROLL
      for (int four = 0; four < 2; four++) {
        const int at = 16 * four + 4 * own;
        load_words<1>(from + 64 * half + at, &lower[half][0][four]);
        load_words<1>(from + 64 * half + 32 + at, &lower[half][1][four]);
        load_words<1>(from + 128 + 32 * half + at, &upper[half][four]);
      }
    }
  }

  DEVICE Scale scale(int part, int half) const {
    const int i = 2 * part + half;
    return {half_of(all) * (whole((scales[i / 4] >> 8 * (i % 4) & 255) ^ 128) - 128.f), 0.f};
  }

  DEVICE uint32_t four(int part, int i) const {
    const uint32_t low = lower[part / 4][part % 2][i] >> (part % 4 / 2 * 4) & 0x0f0f0f0fu;
    return low | (upper[part / 4][i] >> 2 * (part % 4) & 0x03030303u) << 4;
  }

  DEVICE void pairs(int part, uint32_t* to) const {
    UNROLL
    for (int i = 0; i < 2; i++) pairs_of(four(part, i), 32.f, to + 2 * i);
  }

  DEVICE static float number(const unsigned char* row, int i, int inputs) {
    Q6K block;
    block.load(row, i / WEIGHTS, inputs, i % 16 / 4);
    const int part = i % WEIGHTS / PART, half = i % PART / 16;
    const uint32_t quant = block.four(part, half) >> 8 * (i % 4) & 255;
    return block.scale(part, half).scale * ((float)quant - 32.f);
  }
};

// Eight of 32 numbers of a row of inputs, as sums of TERMS numbers of bf16 each: pairs of each term. They are
// neighbours, or if FINE four of the first and four of the second 16.
template <typename T> struct Terms {
  static constexpr int TERMS = sizeof(T) == 4 ? 3 : 2;
  uint32_t pairs[TERMS][4];

  template <bool FINE> DEVICE void load(const T* from, int own) {
    union Numbers {
      uint32_t words[2 * sizeof(T)];
      T numbers[8];
      DEVICE Numbers() {}
    } found;
    load_words<sizeof(T)>(from + (FINE ? 4 : 8) * own, found.words);
    load_words<sizeof(T)>(from + (FINE ? 16 + 4 * own : 8 * own + 4), found.words + sizeof(T));
    float rest[8];
    UNROLL
    for (int i = 0; i < 8; i++) rest[i] = wide(found.numbers[i]);
    split_terms<bf16_t, TERMS>(rest, pairs);
  }
};
template <> struct Terms<bf16_t> {
  static constexpr int TERMS = 1;
  uint32_t pairs[TERMS][4];

  template <bool FINE> DEVICE void load(const bf16_t* from, int own) {
    if (FINE) {
      load_words<2>(from + 4 * own, pairs[0]);
      load_words<2>(from + 16 + 4 * own, pairs[0] + 2);
    } else {
      load_words<4>(from + 8 * own, pairs[0]);
    }
  }
};

// y[row][output] = sum of x[row] * weights[output], for all WIDTH rows; rows of y have `stride` numbers. A
// block for each OUTPUTS outputs. Its warps take blocks of weights by turns, and their sums are added up in
// their order.
template <typename Blocks, typename T>
DEVICE void blocks_product(const unsigned char* weights, const T* x, float* y, int inputs, int outputs,
                           int stride) {
  const int warp = threadIdx.x / 32, own = threadIdx.x % 4, group = threadIdx.x % 32 / 4;
  const int first = blockIdx.x * OUTPUTS;
  // Outputs of two tiles of 16, times rows of two tiles of 8: four sums each.
  float totals[2][2][4] = {};
  for (int block = warp; block * Blocks::WEIGHTS < inputs; block += TURNS) {
    Blocks held[4];
    UNROLL
    for (int i = 0; i < 4; i++) {
      const int output = first + group + 8 * i < outputs ? first + group + 8 * i : outputs - 1;
      held[i].load(weights + output * Blocks::row(inputs), block, inputs, own);
    }
    UNROLL
    for (int part = 0; part < Blocks::WEIGHTS / PART; part++) {
      const int from = block * Blocks::WEIGHTS + part * PART;
      if (from >= inputs) break;
      Terms<T> terms[2];
      uint32_t pairs[4][4];
      UNROLL
      for (int n = 0; n < 2; n++) {
        terms[n].template load<Blocks::FINE>(x + (size_t)(group + 8 * n) * inputs + from, own);
      }
      UNROLL
      for (int i = 0; i < 4; i++) held[i].pairs(part, pairs[i]);
      float sums[2][2][4] = {}, inputs_of[2][4] = {};
      UNROLL
      for (int half = 0; half < 2; half++) {
        UNROLL
        for (int n = 0; n < 2; n++) {
          UNROLL
          for (int term = 0; term < Terms<T>::TERMS; term++) {
            const uint32_t* right = terms[n].pairs[term] + 2 * half;
            UNROLL
            for (int m = 0; m < 2; m++) {
              const uint32_t *first = pairs[2 * m] + 2 * half, *second = pairs[2 * m + 1] + 2 * half;
              const uint32_t left[4] = {first[0], second[0], first[1], second[1]};
              tensor_product<bf16_t>(sums[m][n], left, right);
            }
            const uint32_t ones[4] = {0x3f803f80u, 0x3f803f80u, 0x3f803f80u, 0x3f803f80u};
            if (Blocks::OFFSETS) tensor_product<bf16_t>(inputs_of[n], ones, right);
          }
        }
        if (!Blocks::FINE && half == 0) continue;
        UNROLL
        for (int i = 0; i < 4; i++) {
          const Scale scale = held[i].scale(part, half);
          UNROLL
          for (int n = 0; n < 2; n++) {
            UNROLL
            for (int j = 0; j < 2; j++) {
              float &total = totals[i / 2][n][i % 2 * 2 + j], &sum = sums[i / 2][n][i % 2 * 2 + j];
              total += scale.scale * sum;
              if (Blocks::OFFSETS) total -= scale.offset * inputs_of[n][j];
              sum = 0.f;
            }
          }
        }
      }
    }
  }
  // Places a row apart lie in different banks.
  SHARED float parts[TURNS][WIDTH][OUTPUTS + 1];
  UNROLL
  for (int i = 0; i < 4; i++) {
    UNROLL
    for (int n = 0; n < 2; n++) {
      UNROLL
      for (int j = 0; j < 2; j++) {
        parts[warp][8 * n + 2 * own + j][group + 8 * i] = totals[i / 2][n][i % 2 * 2 + j];
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < WIDTH * OUTPUTS; i += blockDim.x) {
    const int row = i / OUTPUTS, output = i % OUTPUTS;
    float sum = 0.f;
    for (int turn = 0; turn < TURNS; turn++) sum += parts[turn][row][output];
    if (first + output < outputs) y[(size_t)row * stride + first + output] = sum;
  }
}

// x[row] = table[token of row]. A block for each row.
template <typename Blocks>
DEVICE void embed_blocks(const Inputs* in, const unsigned char* table, float* x, int hidden) {
  const uint32_t row = blockIdx.x;
  if (row >= in->count) return;
  const unsigned char* from = table + in->tokens[row] * Blocks::row(hidden);
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    x[(size_t)row * hidden + i] = Blocks::number(from, i, hidden);
  }
}

#define BLOCKS_OF(FORMAT, BLOCKS, NAME, T) \
  KERNEL(256) \
  product_##FORMAT##_##NAME(const unsigned char* weights, const T* x, float* y, int inputs, int outputs, \
                            int stride) { \
    blocks_product<BLOCKS, T>(weights, x, y, inputs, outputs, stride); \
  } \
  KERNEL(256) \
  embed_##FORMAT##_##NAME(const Inputs* in, const unsigned char* table, float* x, int hidden) { \
    embed_blocks<BLOCKS>(in, table, x, hidden); \
  }
#define BLOCKS(NAME, T) \
  BLOCKS_OF(q4_k, WithOffsets<false>, NAME, T) \
  BLOCKS_OF(q5_k, WithOffsets<true>, NAME, T) \
  BLOCKS_OF(q6_k, Q6K, NAME, T) \
  BLOCKS_OF(q8_0, Q8, NAME, T)
FOR_NUMBERS(BLOCKS)
