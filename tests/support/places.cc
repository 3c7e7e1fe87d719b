#include "tests/support/places.h"

namespace linnet {

std::filesystem::path SourceDir() { return LINNET_SOURCE_DIR; }

std::filesystem::path ProgramDir() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

std::filesystem::path FakeNvml() { return ProgramDir() / "../fake-nvml/libnvidia-ml.so.1"; }

}  // namespace linnet
