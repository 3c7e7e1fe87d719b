#pragma once

#include <filesystem>

namespace linnet {

// Where tests find files. No other source knows a folder of the machine, so ccache has the objects
// of the others also for a checkout elsewhere.

// The root of the repository.
std::filesystem::path SourceDir();

// The folder of the running test, which has all other programs.
std::filesystem::path ProgramDir();

// The tests' fake of NVIDIA's driver library.
std::filesystem::path FakeNvml();

}  // namespace linnet
