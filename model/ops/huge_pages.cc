#include "model/ops/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

namespace linnet::ops {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = size_t{2} << 20;     // a huge page of x86-64
constexpr size_t kRegion = size_t{64} << 20;  // of address space, that pieces share

#ifdef __SANITIZE_ADDRESS__
constexpr bool kRedZones = true;  // each piece by itself, so that AddressSanitizer sees its ends
#else
constexpr bool kRedZones = false;
#endif

constexpr size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
std::byte* RoundUp(std::byte* address, size_t unit) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  return address + (RoundUp(at, unit) - at);
}

// Address space of whole huge pages, from which pieces are taken one after another.
class HugeRegion {
 public:
  explicit HugeRegion(size_t bytes) : bytes_(RoundUp(bytes, kPage)) {
    const size_t mapped = bytes_ + kPage;  // what lies before and after whole pages is given back
    void* const memory =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    auto* const begin = static_cast<std::byte*>(memory);
    begin_ = RoundUp(begin, kPage);
    const size_t before = begin_ - begin;
    if (before > 0) munmap(begin, before);
    munmap(begin_ + bytes_, kPage - before);
    madvise(begin_, bytes_, MADV_HUGEPAGE);  // a kernel without huge pages refuses
  }
  ~HugeRegion() { munmap(begin_, bytes_); }
  HugeRegion(const HugeRegion&) = delete;
  HugeRegion& operator=(const HugeRegion&) = delete;

  bool fits(size_t bytes) const { return taken_ + bytes <= bytes_; }
  std::byte* Take(size_t bytes) { return begin_ + std::exchange(taken_, taken_ + bytes); }

 private:
  const size_t bytes_;
  size_t taken_ = 0;
  std::byte* begin_;
};

// Gives back the pages that lie in a piece alone, which its neighbours would keep.
void GiveBack(std::byte* begin, size_t bytes) {
  std::byte* const first = RoundUp(begin, kPage);
  std::byte* const last = RoundUp(begin + bytes + 1, kPage) - kPage;
  if (first < last) madvise(first, last - first, MADV_DONTNEED);
}

// The region from which pieces are taken now.
struct Current {
  std::mutex mu;
  std::weak_ptr<HugeRegion> region;
};

}  // namespace

std::shared_ptr<std::byte> ZerosInHugePages(size_t bytes) {
  if (kRedZones) {
    void* const memory = std::aligned_alloc(kLine, RoundUp(bytes + 1, kLine));
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, bytes);
    return {static_cast<std::byte*>(memory), std::free};
  }
  static Current current;
  const size_t taken = RoundUp(bytes, kLine);
  std::shared_ptr<HugeRegion> region;
  std::byte* begin = nullptr;
  {
    const std::lock_guard lock(current.mu);
    region = current.region.lock();
    if (region == nullptr || !region->fits(taken)) {
      region = std::make_shared<HugeRegion>(std::max(taken, kRegion));
      current.region = region;
    }
    begin = region->Take(taken);
  }
  return {begin, [region, taken](std::byte* piece) { GiveBack(piece, taken); }};
}

}  // namespace linnet::ops
