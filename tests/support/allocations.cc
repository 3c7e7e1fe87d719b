#include "tests/support/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace linnet::test {
namespace {

constexpr int64_t kHeader = 8;  // the allocator's header before each block

std::atomic<int64_t> live = 0;
std::atomic<int64_t> peak = 0;
std::atomic<int64_t> countdown = 0;
std::atomic<bool> has_failed = false;
thread_local bool may_fail = false;

void* Allocate(std::size_t size, std::size_t alignment) {
  if (may_fail && countdown.load() > 0 && countdown.fetch_sub(1) == 1) {
    has_failed = true;
    throw std::bad_alloc();
  }
  void* block = alignment > alignof(std::max_align_t)
                    ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                    : std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) throw std::bad_alloc();
  const int64_t bytes = static_cast<int64_t>(malloc_usable_size(block)) + kHeader;
  const int64_t now = live.fetch_add(bytes) + bytes;
  for (int64_t seen = peak.load(); now > seen && !peak.compare_exchange_weak(seen, now);) {
  }
  return block;
}

void Release(void* block) {
  if (block == nullptr) return;
  live.fetch_sub(static_cast<int64_t>(malloc_usable_size(block)) + kHeader);
  std::free(block);
}

}  // namespace

int64_t Allocations::live_bytes() { return live; }
int64_t Allocations::peak_bytes() { return peak; }
void Allocations::ResetPeak() { peak = live.load(); }
void Allocations::FailNth(int64_t n) {
  has_failed = false;
  countdown = n;
}
bool Allocations::failed() { return has_failed; }
void Allocations::MayFail(bool on_this_thread) { may_fail = on_this_thread; }

}  // namespace linnet::test

using linnet::test::Allocate;
using linnet::test::Release;

void* operator new(std::size_t size) { return Allocate(size, 1); }
void* operator new[](std::size_t size) { return Allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { Release(block); }
void operator delete[](void* block) noexcept { Release(block); }
void operator delete(void* block, std::size_t) noexcept { Release(block); }
void operator delete[](void* block, std::size_t) noexcept { Release(block); }
void operator delete(void* block, std::align_val_t) noexcept { Release(block); }
void operator delete[](void* block, std::align_val_t) noexcept { Release(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { Release(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { Release(block); }
