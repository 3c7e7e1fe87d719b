#pragma once

#include <cstddef>
#include <memory>

namespace linnet::ops {

// Returns zeroed memory on a line of the cache, for what every step reads: packed weights and the
// encoder cache. It lies in huge pages where the system has them (transparent_hugepage "madvise" or
// "always"), so that reading it misses the TLB rarely, and it becomes resident page by page as it
// is written. Small pieces share pages, and a page lives as long as a piece of it. Throws
// std::bad_alloc. Thread-safe.
std::shared_ptr<std::byte> ZerosInHugePages(size_t bytes);

}  // namespace linnet::ops
