#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace linnet::model {

// Allocates the numbers first … first+size-1: decoder slots, blocks of the encoder cache. Not
// thread-safe.
class FreeList {
 public:
  // Owns allocated numbers and frees them when it is destroyed. The list must outlive it.
  class Lease {
   public:
    Lease() = default;
    ~Lease() { Free(); }
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;

    std::span<const int32_t> numbers() const { return numbers_; }

   private:
    friend class FreeList;
    Lease(FreeList* list, std::vector<int32_t> numbers);
    void Free();

    FreeList* list_ = nullptr;
    std::vector<int32_t> numbers_;
  };

  explicit FreeList(int size, int first = 0);
  FreeList(const FreeList&) = delete;
  FreeList& operator=(const FreeList&) = delete;

  // Requires count <= free(). Returns the numbers freed last first, since their memory may still be
  // in the cache.
  Lease Take(int count);

  int size() const { return size_; }
  int free() const { return static_cast<int>(free_.size()); }
  int used() const { return size_ - free(); }

 private:
  int size_;
  std::vector<int32_t> free_;  // a stack
};

}  // namespace linnet::model
