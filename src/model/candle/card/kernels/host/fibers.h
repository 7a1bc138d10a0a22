// Fibers: functions that give way to others in the middle. A switch of ten instructions where this is known,
// since the system's own (ucontext) makes a system call each time, a hundred times as long.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && defined(__linux__)

extern "C" void domino_card_switch(void** from, void* to);
asm(R"(
.text
.p2align 4
.globl domino_card_switch
.type domino_card_switch, @function
domino_card_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size domino_card_switch, .-domino_card_switch
)");

struct Fiber {
  void* stack_pointer = nullptr;

  // Makes a fiber that begins with `entry`, which never returns.
  void begin(char* stack, size_t size, void (*entry)()) {
    uintptr_t top = reinterpret_cast<uintptr_t>(stack + size) & ~uintptr_t(15);
    void** at = reinterpret_cast<void**>(top);
    // As after a call: the stack is 8 off a multiple of 16 when `entry` begins.
    *--at = nullptr;
    *--at = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; i++) *--at = nullptr;
    stack_pointer = at;
  }
};

inline void switch_fiber(Fiber& from, Fiber& to) {
  domino_card_switch(&from.stack_pointer, to.stack_pointer);
}

#else

#include <ucontext.h>

struct Fiber {
  ucontext_t context;

  void begin(char* stack, size_t size, void (*entry)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = size;
    context.uc_link = nullptr;
    makecontext(&context, entry, 0);
  }
};

inline void switch_fiber(Fiber& from, Fiber& to) { swapcontext(&from.context, &to.context); }

#endif
