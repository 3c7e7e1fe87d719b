#include "model/torch/module/wait_policy.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace linnet::model {

void WaitPassively(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  setenv("GOMP_SPINCOUNT", "10000", 1);  // rounds of one pause instruction
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(program.c_str(), argv);  // by its name, which ps and pkill show
  execv("/proc/self/exe", argv);             // the file no longer exists
  // Without /proc the program continues unchanged: slower on shared cores, but correct.
}

}  // namespace linnet::model
