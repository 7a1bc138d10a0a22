// The choice of a token from each row, under masks: the largest logit, or the largest logit over the
// temperature plus noise (Gumbel-max sampling). The tokens are those that the CPU chooses, to the last tie.
#include "noise.cuh"

// No token can be chosen.
constexpr uint32_t NONE = 0xffffffffu;
// Threads of a block, and most blocks for a row.
constexpr int CHOOSERS = 256, MOST_PARTS = 32;
// Words of what is asked of a row, and of what a block has found in its part of it.
constexpr int ASKED_WORDS = 5, PART_WORDS = 4;

DEVICE uint64_t joined(const uint32_t* halves) { return (uint64_t)halves[1] << 32 | halves[0]; }

// What is asked of a row: the key of the noise, the temperature (zero: the largest logit wins), and how many
// of the row's logits count. Words, since the buffer is one of words.
struct Asked {
  uint64_t key;
  double temperature;
  int width;

  DEVICE explicit Asked(const uint32_t* words)
      : key(joined(words)), temperature(exact::of_bits(joined(words + 2))), width((int)words[4]) {}
};

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

  DEVICE void enter(const Asked& asked, float logit, uint32_t id) {
    if (asked.temperature == 0.0) {
      take((double)logit, id);
      return;
    }
    const double score = exact::over((double)logit, asked.temperature);
    const uint64_t bits = noise_bits(asked.key, id);
    // Most tokens cannot win whatever their noise is, and need no logarithms.
    if (exact::plus(score, gumbel_bound(bits)) >= total) take(exact::plus(score, gumbel(bits)), id);
  }
};

// Of each part of each row the best token whose bit is set and whose logit is above minus infinity, and
// whether any logit there is NaN or plus infinity. Rows have `stride` logits, masks `words` words of 32 bits.
// Grid (parts, rows).
KERNEL(CHOOSERS)
choose(const float* logits, const uint32_t* asked, const uint32_t* masks, uint32_t* parts, int stride,
       int words) {
  const Asked own(asked + (size_t)blockIdx.y * ASKED_WORDS);
  logits += (size_t)blockIdx.y * stride;
  masks += (size_t)blockIdx.y * words;
  // Whole words of the mask.
  const int count = (int)gridDim.x, chunk = ((own.width + count - 1) / count + 31) / 32 * 32;
  const int from = (int)blockIdx.x * chunk, to = from + chunk < own.width ? from + chunk : own.width;
  Best best = {-INFINITY, NONE};
  uint32_t wrong = 0;
  for (int i = from + (int)threadIdx.x; i < to; i += (int)blockDim.x) {
    const float logit = logits[i];
    if (!(logit < INFINITY)) wrong = 1;
    const bool may = (masks[i / 32] >> (i % 32) & 1u) != 0 && logit > -INFINITY;
    if (may && logit < INFINITY) best.enter(own, logit, (uint32_t)i);
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
  }
}

// found[row]: the best token of the row's parts; NONE if there is none, or any logit is NaN or plus infinity.
// A block for each row.
KERNEL(MOST_PARTS) settle(const uint32_t* parts, uint32_t* found, int count) {
  SHARED double totals[MOST_PARTS];
  SHARED uint32_t tokens[MOST_PARTS], faults[MOST_PARTS];
  const int thread = (int)threadIdx.x;
  if (thread < count) {
    const uint32_t* part = parts + ((size_t)blockIdx.x * count + thread) * PART_WORDS;
    totals[thread] = exact::of_bits(joined(part));
    tokens[thread] = part[2];
    faults[thread] = part[3];
  }
  __syncthreads();
  if (thread > 0) return;
  Best best = {-INFINITY, NONE};
  uint32_t wrong = 0;
  for (int i = 0; i < count; i++) {
    best.take(totals[i], tokens[i]);
    wrong |= faults[i];
  }
  found[blockIdx.x] = wrong ? NONE : best.token;
}
