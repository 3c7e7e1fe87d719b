#include "server/schedule/engine_life.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status_macros.h"
#include "server/base/exceptions.h"

namespace linnet::server {
namespace {

// Resident memory of this process, in bytes; 0 if it cannot be read.
int64_t ResidentBytes() {
  std::ifstream stream("/proc/self/statm");
  int64_t size = 0, resident = 0;
  stream >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

void EngineLife::Announce(const model::EngineInfo& info) {
  engine_ = std::make_unique<GuardedEngine>(info, detector_, supervision_.stall_timeout);
}

absl::StatusOr<EngineLife::Built> EngineLife::Build() {
  using Engine = absl::StatusOr<std::unique_ptr<model::Engine>>;
  const int64_t resident = ResidentBytes();
  ASSIGN_OR_RETURN(std::unique_ptr<model::Engine> engine,
                   detector_.Watch(supervision_.load_timeout, [this]() -> Engine {
                     Remove();
                     try {
                       return factory_();
                     } catch (...) {
                       return absl::InternalError(
                           absl::StrCat("building the engine threw: ", ExceptionMessage()));
                     }
                   }));
  return Built{std::move(engine), ResidentBytes() - resident};
}

void EngineLife::Install(std::unique_ptr<model::Engine> engine) {
  if (engine_ == nullptr) {
    engine_ =
        std::make_unique<GuardedEngine>(std::move(engine), detector_, supervision_.stall_timeout);
  } else {
    engine_->Replace(std::move(engine));
  }
}

void EngineLife::Unload() {
  engine_->Remove();
  malloc_trim(0);  // the C library keeps freed pages otherwise
}

}  // namespace linnet::server
