// Runs kernels on the host, block by block; see emulator.h.
#include "../all.cu"

#include "fibers.h"

#include <memory>
#include <utility>
#include <vector>

namespace emulator {

thread_local Index thread, block, block_size, grid_size;

namespace {

constexpr size_t STACK = 64 * 1024;
constexpr int MOST = 1024, LANES = 32;

// What a thread of the block does next.
enum State { RUNS, DONE };

// A place where threads wait for each other: how many are here, and how often it was passed.
struct Meeting {
  int here = 0;
  unsigned passed = 0;
};

struct Runner {
  Fiber scheduler, fibers[MOST];
  std::unique_ptr<char[]> stacks{new char[STACK * MOST]};
  State states[MOST];
  unsigned waiting[MOST];
  uint32_t words[2][MOST];
  Fragment fragments[2][MOST];
  Meeting barrier, warps[MOST / LANES];
  int current = 0, count = 0, live = 0;
  bool moved = false;
  void (*call)(void*) = nullptr;
  void* argument = nullptr;
};

thread_local std::unique_ptr<Runner> runner;

// The first function of each fiber.
void enter() {
  Runner& own = *runner;
  own.call(own.argument);
  own.states[own.current] = DONE;
  own.live--;
  own.moved = true;
  switch_fiber(own.fibers[own.current], own.scheduler);
}

void give_way() {
  const int own = runner->current;
  switch_fiber(runner->fibers[own], runner->scheduler);
}

void meet(Meeting& meeting, int all) {
  runner->moved = true;
  const unsigned mine = meeting.passed;
  if (++meeting.here == all) {
    meeting.here = 0;
    meeting.passed++;
    return;
  }
  while (meeting.passed == mine) give_way();
}

// Runs one block; false if its threads wait for each other in vain.
bool run_block(bool backwards) {
  Runner& own = *runner;
  own.barrier = Meeting();
  for (Meeting& warp : own.warps) warp = Meeting();
  own.live = own.count;
  for (int i = 0; i < own.count; i++) {
    own.states[i] = RUNS;
    own.fibers[i].begin(own.stacks.get() + STACK * i, STACK, enter);
  }
  while (own.live > 0) {
    own.moved = false;
    for (int i = 0; i < own.count; i++) {
      own.current = backwards ? own.count - 1 - i : i;
      if (own.states[own.current] == DONE) continue;
      thread = {(unsigned)own.current, 0, 0};
      switch_fiber(own.scheduler, own.fibers[own.current]);
    }
    if (!own.moved) return false;
  }
  return own.barrier.here == 0;
}

}  // namespace

void barrier() { meet(runner->barrier, runner->count); }

uint32_t exchange(uint32_t value, int distance) {
  const int own = runner->current;
  Meeting& warp = runner->warps[own / LANES];
  // Two sets of words in turns: a lane can be one exchange ahead of its warp, and not two.
  uint32_t* words = runner->words[warp.passed % 2];
  words[own] = value;
  meet(warp, LANES);
  return words[own ^ distance];
}

const Fragment* exchange_all(const Fragment& given) {
  const int own = runner->current, lane = own % LANES;
  Meeting& warp = runner->warps[own / LANES];
  Fragment* lanes = runner->fragments[warp.passed % 2] + (own - lane);
  lanes[lane] = given;
  meet(warp, LANES);
  return lanes;
}

namespace {

template <typename... Arguments> struct Call {
  void (*kernel)(Arguments...);
  void** arguments;

  template <size_t... I> void make(std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<Arguments>*>(arguments[I])...);
  }

  static void run(void* self) { static_cast<Call*>(self)->make(std::index_sequence_for<Arguments...>()); }
};

// All blocks of a launch, one after the other.
template <typename... Arguments>
bool launch(void (*kernel)(Arguments...), void** arguments, const unsigned* grid, unsigned threads,
            bool backwards) {
  if (threads == 0 || threads > MOST || threads % LANES != 0) return false;
  if (!runner) runner.reset(new Runner());
  static thread_local Call<Arguments...> call;
  call = {kernel, arguments};
  runner->call = Call<Arguments...>::run;
  runner->argument = &call;
  runner->count = (int)threads;
  grid_size = {grid[0], grid[1], grid[2]};
  block_size = {threads, 1, 1};
  bool fine = true;
  for (unsigned z = 0; z < grid[2]; z++) {
    for (unsigned y = 0; y < grid[1]; y++) {
      for (unsigned x = 0; x < grid[0]; x++) {
        block = {x, y, z};
        fine = fine && run_block(backwards);
      }
    }
  }
  return fine;
}

template <typename T>
void product(const T* weights, const T* x, float* y, int rows, int inputs, int outputs, int stride) {
  for (int row = 0; row < rows; row++) {
    for (int output = 0; output < outputs; output++) {
      float sum = 0.f;
      for (int i = 0; i < inputs; i++) {
        sum += wide(weights[(size_t)output * inputs + i]) * wide(x[(size_t)row * inputs + i]);
      }
      y[(size_t)row * stride + output] = sum;
    }
  }
}

}  // namespace
}  // namespace emulator

// Runs the kernel of this name. 0: done; 1: there is none; 2: its threads waited for each other in vain.
extern "C" int domino_card_launch(const char* name, const unsigned* grid, unsigned threads, void** arguments,
                                  int backwards) {
  using emulator::launch;
#define TRY(KERNEL) \
  if (std::strcmp(name, #KERNEL) == 0) { \
    return launch(KERNEL, arguments, grid, threads, backwards != 0) ? 0 : 2; \
  }
#define TRY_ALL(NAME, T) \
  TRY(embed_##NAME) \
  TRY(norm_##NAME) \
  TRY(gate_##NAME) \
  TRY(heads_##NAME) \
  TRY(attention_16_##NAME) \
  TRY(attention_32_##NAME) \
  TRY(attention_any_##NAME) \
  TRY(combine_##NAME) \
  TRY(product_q4_k_##NAME) \
  TRY(embed_q4_k_##NAME) \
  TRY(product_q5_k_##NAME) \
  TRY(embed_q5_k_##NAME) \
  TRY(product_q6_k_##NAME) \
  TRY(embed_q6_k_##NAME) \
  TRY(product_q8_0_##NAME) \
  TRY(embed_q8_0_##NAME)
  FOR_NUMBERS(TRY_ALL)
  TRY(attention_64_f32)
  TRY(attention_128_f32)
  TRY(attention_256_f32)
  TRY(attention_rows_64_f16)
  TRY(attention_rows_128_f16)
  TRY(attention_rows_256_f16)
  TRY(attention_rows_64_bf16)
  TRY(attention_rows_128_bf16)
  TRY(attention_rows_256_bf16)
  TRY(choose)
  TRY(settle)
  TRY(list_near)
  return 1;
}

// Rows [rows, inputs] times weights [outputs, inputs]: [rows, outputs] in 32 bits, of rows of `stride`
// numbers, summed in order. Stands for cuBLAS.
extern "C" int domino_card_product(const char* numbers, const void* weights, const void* x, float* y,
                                   int rows, int inputs, int outputs, int stride) {
#define PRODUCT(NAME, T) \
  if (std::strcmp(numbers, #NAME) == 0) { \
    emulator::product(static_cast<const T*>(weights), static_cast<const T*>(x), y, rows, inputs, outputs, \
                      stride); \
    return 0; \
  }
  FOR_NUMBERS(PRODUCT)
  return 1;
}
