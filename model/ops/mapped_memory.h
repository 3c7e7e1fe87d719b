#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>

// Memory of weights that is mapped from a file: read-only, shared with other processes, and
// resident page by page as it is read.
namespace linnet::ops {

// Maps bytes of an open file, at any position. The memory stays valid after the file is closed, and
// is unmapped with the result. Throws c10::Error if the system refuses.
at::DataPtr MapFile(int descriptor, uint64_t position, size_t bytes);

// Makes whole pages in this range not resident if the memory was mapped by MapFile: reading them
// again is slow, and gives the same bytes. Has no effect on other memory.
void GiveBackPages(const at::DataPtr& memory, const void* begin, size_t bytes);

}  // namespace linnet::ops
