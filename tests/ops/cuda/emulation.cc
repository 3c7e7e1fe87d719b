#include "tests/ops/cuda/emulation.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

// void SwitchStacks(void** from, void* to): pushes the callee-saved registers, stores the stack
// pointer in *from, and continues at `to`.
extern "C" void LinnetSwitchStacks(void** from, void* to);
__asm__(
    ".text\n.globl LinnetSwitchStacks\n.type LinnetSwitchStacks,@function\nLinnetSwitchStacks:\n"
    "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n  mov %rsi, %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n  ret\n");

namespace linnet::emulated {
namespace {

constexpr size_t kStackBytes = 64 << 10;

enum class State { kRuns, kAtBlock, kAtWarp, kEnded };

struct Warp {
  Slot slots[2][kWarp];
};

struct Fiber {
  std::unique_ptr<char[]> stack;
  void* stack_pointer = nullptr;
  State state = State::kRuns;
  Place place;
  Warp* warp = nullptr;
  int exchanges = 0;
};

std::vector<Fiber> fibers;
std::vector<Warp> warps;
std::vector<uint64_t> shared;
Fiber* running = nullptr;
void* scheduler = nullptr;
int64_t counted_exchanges = 0;
const std::function<void()>* kernel_of_launch = nullptr;

void Yield(State state) {
  running->state = state;
  LinnetSwitchStacks(&running->stack_pointer, scheduler);
}

void RunFiber() {
  (*kernel_of_launch)();
  Yield(State::kEnded);
  std::abort();
}

void Prepare(Fiber& fiber) {
  if (fiber.stack == nullptr) fiber.stack = std::make_unique<char[]>(kStackBytes);
  auto* top = reinterpret_cast<void**>(
      (reinterpret_cast<uintptr_t>(fiber.stack.get()) + kStackBytes) & ~uintptr_t{15});
  *--top = nullptr;  // at a call the stack is 8 bytes off a multiple of 16
  *--top = reinterpret_cast<void*>(RunFiber);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fiber.stack_pointer = top;
  fiber.state = State::kRuns;
  fiber.exchanges = 0;
}

// Resumes the fibers whose barrier is complete.
bool Release(Fiber* first, Fiber* last, State at) {
  bool any = false;
  for (Fiber* fiber = first; fiber < last; ++fiber) {
    if (fiber->state != at && fiber->state != State::kEnded) return false;
    any = any || fiber->state == at;
  }
  for (Fiber* fiber = first; fiber < last; ++fiber) {
    if (fiber->state == at) fiber->state = State::kRuns;
  }
  return any;
}

void RunBlock(int threads, std::mt19937& random) {
  std::vector<int> order(threads);
  for (int i = 0; i < threads; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  while (true) {
    bool ran = false, left = false;
    for (int i : order) {
      if (fibers[i].state != State::kRuns) continue;
      running = &fibers[i];
      LinnetSwitchStacks(&scheduler, running->stack_pointer);
      ran = true;
    }
    for (int i = 0; i < threads; i += kWarp) {
      left |= Release(&fibers[i], &fibers[std::min(i + kWarp, threads)], State::kAtWarp);
    }
    left |= Release(&fibers[0], &fibers[0] + threads, State::kAtBlock);
    if (left) continue;
    const bool over = std::all_of(fibers.begin(), fibers.begin() + threads,
                                  [](const Fiber& f) { return f.state == State::kEnded; });
    if (over) return;
    if (!ran) {
      std::fprintf(stderr, "threads of a block wait at different barriers for each other\n");
      std::abort();
    }
  }
}

}  // namespace

const Place& place() { return running->place; }
void* dynamic_shared() { return shared.data(); }
void WaitForBlock() { Yield(State::kAtBlock); }
void WaitForWarp() { Yield(State::kAtWarp); }

Slot* Exchange(uint64_t own) {
  // Two alternating sets suffice: no fiber is two exchanges ahead.
  if (running->place.thread.x % kWarp == 0) ++counted_exchanges;
  Slot* slots = running->warp->slots[running->exchanges++ % 2];
  slots[running->place.thread.x % kWarp] = {own, true};
  WaitForWarp();
  return slots;
}

int64_t exchanges() { return counted_exchanges; }

void Launch(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& kernel) {
  const int threads = static_cast<int>(block.x);
  if (block.y != 1 || block.z != 1 || threads < 1 || threads > 1024 || grid.x < 1 ||
      grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 || shared_bytes > 48 << 10) {
    std::fprintf(stderr, "no GPU takes a launch of this size\n");
    std::abort();
  }
  std::mt19937 random(1);
  if (fibers.size() < threads) fibers.resize(threads);
  warps.resize((fibers.size() + kWarp - 1) / kWarp);
  kernel_of_launch = &kernel;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        shared.assign((shared_bytes + 7) / 8, 0x7ff0dead7ff0deadull);
        std::memset(static_cast<void*>(warps.data()), 0, warps.size() * sizeof(Warp));
        for (int i = 0; i < threads; ++i) {
          fibers[i].place = {{unsigned(i), 0, 0}, {x, y, z}, block, grid};
          fibers[i].warp = &warps[i / kWarp];
          Prepare(fibers[i]);
        }
        RunBlock(threads, random);
      }
    }
  }
}

}  // namespace linnet::emulated
