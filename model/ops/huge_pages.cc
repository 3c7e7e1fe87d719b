#include "model/ops/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

namespace linnet::ops {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = size_t{2} << 20;    // a huge page of x86-64
constexpr size_t kRegion = size_t{8} << 20;  // that pieces of up to a page share

constexpr size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Whole huge pages.
class HugeRegion {
 public:
  explicit HugeRegion(size_t bytes) : bytes_(RoundUp(bytes, kPage)) {
    const size_t mapped = bytes_ + kPage;  // what lies before and after whole pages is given back
    void* const memory =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    auto* const begin = static_cast<std::byte*>(memory);
    const size_t before =
        RoundUp(reinterpret_cast<uintptr_t>(begin), kPage) - reinterpret_cast<uintptr_t>(begin);
    begin_ = begin + before;
    if (before > 0) munmap(begin, before);
    munmap(begin_ + bytes_, kPage - before);
    madvise(begin_, bytes_, MADV_HUGEPAGE);  // a kernel without huge pages refuses
  }
  ~HugeRegion() { munmap(begin_, bytes_); }
  HugeRegion(const HugeRegion&) = delete;
  HugeRegion& operator=(const HugeRegion&) = delete;

  std::byte* begin() const { return begin_; }

 private:
  size_t bytes_;
  std::byte* begin_;
};

// The region from which pieces are taken now.
struct Current {
  std::mutex mu;
  std::weak_ptr<HugeRegion> region;
  size_t taken = 0;
};

}  // namespace

std::shared_ptr<std::byte> ZerosInHugePages(size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  void* const memory = std::aligned_alloc(kLine, RoundUp(bytes + 1, kLine));  // with red zones
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  return {static_cast<std::byte*>(memory), std::free};
#else
  if (bytes > kPage) {
    auto region = std::make_shared<HugeRegion>(bytes);
    std::byte* const begin = region->begin();
    return {std::move(region), begin};
  }
  static Current current;
  const std::lock_guard lock(current.mu);
  std::shared_ptr<HugeRegion> region = current.region.lock();
  const size_t needed = RoundUp(bytes, kLine);
  if (region == nullptr || current.taken + needed > kRegion) {
    region = std::make_shared<HugeRegion>(kRegion);
    current.region = region;
    current.taken = 0;
  }
  std::byte* const begin = region->begin() + std::exchange(current.taken, current.taken + needed);
  return {std::move(region), begin};
#endif
}

}  // namespace linnet::ops
