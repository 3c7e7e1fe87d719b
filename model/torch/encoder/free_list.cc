#include "model/torch/encoder/free_list.h"

#include <cassert>
#include <utility>

namespace linnet::model {

FreeList::Lease::Lease(FreeList* list, std::vector<int32_t> numbers)
    : list_(list), numbers_(std::move(numbers)) {}

FreeList::Lease::Lease(Lease&& other) noexcept
    : list_(std::exchange(other.list_, nullptr)), numbers_(std::exchange(other.numbers_, {})) {}

FreeList::Lease& FreeList::Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    Free();
    list_ = std::exchange(other.list_, nullptr);
    numbers_ = std::exchange(other.numbers_, {});
  }
  return *this;
}

void FreeList::Lease::Free() {
  // The stack has capacity for all numbers, so this does not allocate.
  if (list_ != nullptr) list_->free_.insert(list_->free_.end(), numbers_.rbegin(), numbers_.rend());
  list_ = nullptr;
}

FreeList::FreeList(int size, int first) : size_(size) {
  free_.reserve(size);
  for (int32_t i = size - 1; i >= 0; --i) free_.push_back(first + i);
}

FreeList::Lease FreeList::Take(int count) {
  assert(count <= free());
  std::vector<int32_t> numbers(free_.rbegin(), free_.rbegin() + count);
  free_.resize(free_.size() - count);
  return Lease(this, std::move(numbers));
}

}  // namespace linnet::model
