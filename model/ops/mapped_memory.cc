#include "model/ops/mapped_memory.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace linnet::ops {
namespace {

struct Region {
  void* begin;
  size_t bytes;
};

void Unmap(void* context) {
  const std::unique_ptr<Region> region(static_cast<Region*>(context));
  munmap(region->begin, region->bytes);
}

uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

at::DataPtr MapFile(int descriptor, uint64_t position, size_t bytes) {
  const uint64_t before = position % PageBytes();
  auto region = std::make_unique<Region>();
  region->bytes = bytes + before;
  region->begin = mmap(nullptr, region->bytes, PROT_READ, MAP_PRIVATE, descriptor,
                       static_cast<off_t>(position - before));
  TORCH_CHECK(region->begin != MAP_FAILED, "cannot map ", bytes,
              " bytes of a file: ", std::strerror(errno));
  void* data = static_cast<char*>(region->begin) + before;
  return {data, region.release(), &Unmap, at::kCPU};
}

void GiveBackPages(const at::DataPtr& memory, const void* begin, size_t bytes) {
  if (memory.get_deleter() != &Unmap) return;
  const uint64_t page = PageBytes();
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (address + page - 1) / page * page,
                  last = (address + bytes) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace linnet::ops
