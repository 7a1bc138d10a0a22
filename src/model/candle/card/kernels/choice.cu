// The greedy choice of a row under a mask.
#include "card.cuh"

// No token can be chosen.
constexpr uint32_t NONE = 0xffffffffu;

// found[row]: of the tokens whose bits are set the one with the largest logit, of equals the lowest; NONE if
// there is none above minus infinity, or if any logit of the row is NaN or plus infinity. Rows have `stride`
// logits, of which `width` count; masks have `words` words of 32 bits. A block for each row.
KERNEL(256)
choose(const float* logits, const uint32_t* masks, uint32_t* found, int stride, int width, int words) {
  logits += (size_t)blockIdx.x * stride;
  masks += (size_t)blockIdx.x * words;
  float best = -INFINITY, wrong = 0.f;
  uint32_t token = NONE;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const float logit = logits[i];
    if (!(logit < INFINITY)) wrong = 1.f;
    if ((masks[i / 32] >> (i % 32) & 1u) != 0 && logit > best) {
      best = logit;
      token = (uint32_t)i;
    }
  }
  SHARED float bests[8];
  SHARED uint32_t tokens[8];
  UNROLL
  for (int o = 16; o > 0; o >>= 1) {
    const float other = __shfl_xor_sync(0xffffffffu, best, o);
    const uint32_t theirs = __shfl_xor_sync(0xffffffffu, token, o);
    if (other > best || (other == best && theirs < token)) {
      best = other;
      token = theirs;
    }
  }
  if (threadIdx.x % 32 == 0) {
    bests[threadIdx.x / 32] = best;
    tokens[threadIdx.x / 32] = token;
  }
  // Its barriers are those of the two arrays too.
  const bool fine = block_sum(wrong) == 0.f;
  if (threadIdx.x == 0) {
    for (int w = 1; w < (int)blockDim.x / 32; w++) {
      if (bests[w] > best || (bests[w] == best && tokens[w] < token)) {
        best = bests[w];
        token = tokens[w];
      }
    }
    found[blockIdx.x] = fine ? token : NONE;
  }
}
