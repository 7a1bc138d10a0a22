// The noise of draws, the same bits as on the CPU (src/decode/sampling/noise.rs): SplitMix64 of a key and a
// token, and logarithms by additions, products and divisions of doubles alone. Each is rounded by itself: a
// fused product and sum would have other last bits, and so sometimes another winner.
#pragma once

#include "card.cuh"

namespace exact {

#ifdef __CUDACC__
DEVICE double plus(double a, double b) { return __dadd_rn(a, b); }
DEVICE double minus(double a, double b) { return __dsub_rn(a, b); }
DEVICE double times(double a, double b) { return __dmul_rn(a, b); }
DEVICE double over(double a, double b) { return __ddiv_rn(a, b); }
DEVICE double of_bits(uint64_t bits) { return __longlong_as_double((long long)bits); }
DEVICE uint64_t bits(double x) { return (uint64_t)__double_as_longlong(x); }
DEVICE int leading_zeros(uint64_t x) { return __clzll((long long)x); }
#else
// The host's compiler fuses nothing: build.rs says so.
DEVICE double plus(double a, double b) { return a + b; }
DEVICE double minus(double a, double b) { return a - b; }
DEVICE double times(double a, double b) { return a * b; }
DEVICE double over(double a, double b) { return a / b; }
DEVICE double of_bits(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, 8);
  return x;
}
DEVICE uint64_t bits(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, 8);
  return bits;
}
DEVICE int leading_zeros(uint64_t x) { return x == 0 ? 64 : __builtin_clzll(x); }
#endif

}  // namespace exact

// The odd number nearest to 2^64 over the golden ratio.
constexpr uint64_t GOLDEN = 0x9E3779B97F4A7C15ull;

// The finaliser of SplitMix64.
DEVICE uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// 64 random bits for a token.
DEVICE uint64_t noise_bits(uint64_t key, uint32_t token) { return mix(key + ((uint64_t)token + 1) * GOLDEN); }

// The natural logarithm by the method of fdlibm, step by step as `ln` of the CPU.
DEVICE double exact_ln(double x) {
  using namespace exact;
  const double COEFFICIENTS[7] = {0.6666666666666735,  0.3999999999940942,  0.2857142874366239,
                                  0.22222198432149784, 0.1818357216161805,  0.15313837699209373,
                                  0.14798198605116586};
  const uint64_t word = exact::bits(x);
  int power = (int)(word >> 52) - 1023;
  double reduced = of_bits((word & ((1ull << 52) - 1)) | 1023ull << 52);
  if (reduced > 1.41421356237309504880) {
    reduced = times(reduced, 0.5);
    power++;
  }
  const double exponent = power, f = minus(reduced, 1.0);
  const double s = over(f, plus(2.0, f)), z = times(s, s);
  double series = 0.0;
  UNROLL
  for (int i = 6; i >= 0; i--) series = times(plus(series, COEFFICIENTS[i]), z);
  const double half_square = times(times(0.5, f), f);
  // ln 2 in two parts, the first with zeros at its end.
  const double high = of_bits(0x3FE62E42FEE00000ull), low = of_bits(0x3DEA39EF35793C76ull);
  const double rest = plus(times(s, plus(half_square, series)), times(exponent, low));
  return minus(times(exponent, high), minus(minus(half_square, rest), f));
}

// The Gumbel-distributed number of random bits.
DEVICE double gumbel(uint64_t bits) {
  const double uniform = exact::over(exact::plus((double)(bits >> 11), 0.5), 9007199254740992.0);
  return -exact_ln(-exact_ln(uniform));
}

// An upper bound of it that takes two operations: bits that start with n ones stand for u <= 1 - 2^-(n+1),
// and -ln(-ln(u)) <= -ln(1 - u).
DEVICE float gumbel_bound(uint64_t bits) {
  const int ones = exact::leading_zeros(~bits);
  // A little more than ln 2.
  return (float)((ones < 53 ? ones : 53) + 1) * 0.69315f;
}
