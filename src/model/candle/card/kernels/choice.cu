// The choice of a token from each row, under masks: the largest logit, or the largest logit over the
// temperature plus noise (Gumbel-max sampling). The tokens are those that the CPU chooses, to the last tie.
#include "noise.cuh"

// No token can be chosen.
constexpr uint32_t NONE = 0xffffffffu;
// Threads of a block, and most blocks for a row.
constexpr int CHOOSERS = 256, MOST_PARTS = 32;
// Words of what is asked of a row, of what a block has found in its part of it, and of the answer.
constexpr int ASKED_WORDS = 6, PART_WORDS = 5, ANSWER_WORDS = 3;
// Most tokens of a row that are listed.
constexpr uint32_t LISTED = 512;

DEVICE uint64_t joined(const uint32_t* halves) { return (uint64_t)halves[1] << 32 | halves[0]; }

// What is asked of a row: the key of the noise, the temperature (zero: the largest logit wins), how many of
// the row's logits count, and how far below the largest logit tokens are listed (zero: none are). Words, since
// the buffer is one of words.
struct Asked {
  uint64_t key;
  double temperature;
  int width;
  float far;

  DEVICE explicit Asked(const uint32_t* words)
      : key(joined(words)),
        temperature(exact::of_bits(joined(words + 2))),
        width((int)words[4]),
        far(number_of(words[5])) {}

  // The part of the row that a block looks at: whole words of the mask.
  DEVICE int from() const { return (int)blockIdx.x * chunk(); }
  DEVICE int to() const { return from() + chunk() < width ? from() + chunk() : width; }
  DEVICE int chunk() const { return ((width + (int)gridDim.x - 1) / (int)gridDim.x + 31) / 32 * 32; }
};

DEVICE bool has_bit(const uint32_t* mask, int i) { return (mask[i / 32] >> (i % 32) & 1u) != 0; }

// The best token so far: the larger total, of equals the lower id.
struct Best {
  double total;
  uint32_t token;

  DEVICE void take(double other, uint32_t theirs) {
    if (other > total || (other == total && theirs < token)) {
      total = other;
      token = theirs;
    }
  }

  // Enters a token of a part whose largest logit is `top`.
  DEVICE void enter(const Asked& asked, float logit, uint32_t id, float top) {
    if (asked.temperature == 0.0) {
      take((double)logit, id);
      return;
    }
    const uint64_t bits = noise_bits(asked.key, id);
    // Most tokens cannot win, and are left out by numbers of 32 bits: cards have few units for doubles. No
    // noise is below -3.63, so neither is the total of the token with the largest logit, less its score.
    const float behind = (logit - top) / (float)asked.temperature;
    if (behind + gumbel_bound(bits) < -3.7f) return;
    take(exact::plus(exact::over((double)logit, asked.temperature), gumbel(bits)), id);
  }
};

// The largest number of a block of CHOOSERS threads, in every thread.
DEVICE float block_largest(float x) {
  SHARED float parts[CHOOSERS / 32];
  UNROLL
  for (int o = 16; o > 0; o >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, o));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  for (int i = 0; i < CHOOSERS / 32; i++) x = fmaxf(x, parts[i]);
  return x;
}

// Of each part of each row the best token whose bit is set and whose logit is above minus infinity, the
// largest such logit, and whether any logit there is NaN or plus infinity. Rows have `stride` logits, masks
// `words` words of 32 bits. Grid (parts, rows).
KERNEL(CHOOSERS)
choose(const float* logits, const uint32_t* asked, const uint32_t* masks, uint32_t* parts, int stride,
       int words) {
  const Asked own(asked + (size_t)blockIdx.y * ASKED_WORDS);
  logits += (size_t)blockIdx.y * stride;
  masks += (size_t)blockIdx.y * words;
  Best best = {-INFINITY, NONE};
  float top = -INFINITY;
  uint32_t wrong = 0;
  for (int i = own.from() + (int)threadIdx.x; i < own.to(); i += (int)blockDim.x) {
    const float logit = logits[i];
    if (!(logit < INFINITY)) {
      wrong = 1;
    } else if (has_bit(masks, i)) {
      top = fmaxf(top, logit);
    }
  }
  top = block_largest(top);
  for (int i = own.from() + (int)threadIdx.x; i < own.to(); i += (int)blockDim.x) {
    const float logit = logits[i];
    if (has_bit(masks, i) && logit < INFINITY && logit > -INFINITY) best.enter(own, logit, (uint32_t)i, top);
  }
  SHARED double totals[CHOOSERS];
  SHARED uint32_t tokens[CHOOSERS], faults[CHOOSERS];
  const int thread = (int)threadIdx.x;
  totals[thread] = best.total;
  tokens[thread] = best.token;
  faults[thread] = wrong;
  __syncthreads();
  for (int half = (int)blockDim.x / 2; half > 0; half /= 2) {
    if (thread < half) {
      best.take(totals[thread + half], tokens[thread + half]);
      totals[thread] = best.total;
      tokens[thread] = best.token;
      faults[thread] |= faults[thread + half];
    }
    __syncthreads();
  }
  if (thread == 0) {
    uint32_t* part = parts + ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * PART_WORDS;
    const uint64_t total = exact::bits(best.total);
    part[0] = (uint32_t)total;
    part[1] = (uint32_t)(total >> 32);
    part[2] = best.token;
    part[3] = faults[0];
    part[4] = word_of(top);
  }
}

// The answer of each row: the best token of its parts (NONE if there is none, or any logit is NaN or plus
// infinity), no token listed so far, and the largest logit. A block for each row.
KERNEL(MOST_PARTS) settle(const uint32_t* parts, uint32_t* answers, int count) {
  SHARED double totals[MOST_PARTS];
  SHARED float tops[MOST_PARTS];
  SHARED uint32_t tokens[MOST_PARTS], faults[MOST_PARTS];
  const int thread = (int)threadIdx.x;
  if (thread < count) {
    const uint32_t* part = parts + ((size_t)blockIdx.x * count + thread) * PART_WORDS;
    totals[thread] = exact::of_bits(joined(part));
    tokens[thread] = part[2];
    faults[thread] = part[3];
    tops[thread] = number_of(part[4]);
  }
  __syncthreads();
  if (thread > 0) return;
  Best best = {-INFINITY, NONE};
  float top = -INFINITY;
  uint32_t wrong = 0;
  for (int i = 0; i < count; i++) {
    best.take(totals[i], tokens[i]);
    top = fmaxf(top, tops[i]);
    wrong |= faults[i];
  }
  uint32_t* answer = answers + (size_t)blockIdx.x * ANSWER_WORDS;
  answer[0] = wrong ? NONE : best.token;
  answer[1] = 0;
  answer[2] = word_of(top);
}

// Lists the tokens of each row whose bits are set and whose logits are near the largest of these, in any
// order: a token and its logit each, the first LISTED of them. Counts all of them in the answer. Grid (parts,
// rows).
KERNEL(CHOOSERS)
list_near(const float* logits, const uint32_t* asked, const uint32_t* masks, uint32_t* answers,
          uint32_t* lists, int stride, int words) {
  const Asked own(asked + (size_t)blockIdx.y * ASKED_WORDS);
  uint32_t* answer = answers + (size_t)blockIdx.y * ANSWER_WORDS;
  if (own.far <= 0.f || answer[0] == NONE) return;
  logits += (size_t)blockIdx.y * stride;
  masks += (size_t)blockIdx.y * words;
  lists += (size_t)blockIdx.y * LISTED * 2;
  const float top = number_of(answer[2]);
  for (int i = own.from() + (int)threadIdx.x; i < own.to(); i += (int)blockDim.x) {
    if (!has_bit(masks, i) || !(top - logits[i] < own.far)) continue;
    const uint32_t at = atomicAdd(answer + 1, 1u);
    if (at >= LISTED) continue;
    lists[2 * at] = (uint32_t)i;
    lists[2 * at + 1] = word_of(logits[i]);
  }
}
