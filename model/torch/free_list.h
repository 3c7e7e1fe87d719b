#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace linnet::model {

// The numbers 0 … size-1 of things that are lent out: decoder lanes, blocks of encoder memory.
// Not thread-safe.
class FreeList {
 public:
  // Numbers on loan, which go back when it dies. It does not outlive its list.
  class Lease {
   public:
    Lease() = default;
    ~Lease() { GiveBack(); }
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;

    std::span<const int32_t> numbers() const { return numbers_; }

   private:
    friend class FreeList;
    Lease(FreeList* list, std::vector<int32_t> numbers);
    void GiveBack();

    FreeList* list_ = nullptr;
    std::vector<int32_t> numbers_;
  };

  explicit FreeList(int size);
  FreeList(const FreeList&) = delete;
  FreeList& operator=(const FreeList&) = delete;

  // count <= free(). The numbers given back last go out first: what they stand for is still in the
  // cache.
  Lease Take(int count);

  int size() const { return size_; }
  int free() const { return static_cast<int>(free_.size()); }
  int used() const { return size_ - free(); }

 private:
  int size_;
  std::vector<int32_t> free_;  // a stack
};

}  // namespace linnet::model
