#include "model/torch/wait_policy.h"

#include <unistd.h>

#include <cstdlib>

namespace linnet::model {

void WaitPassively(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  setenv("GOMP_SPINCOUNT", "10000", 1);  // rounds of one pause instruction
  execv("/proc/self/exe", argv);
  // Without /proc the program goes on as it is: slower on shared cores, not wrong.
}

}  // namespace linnet::model
