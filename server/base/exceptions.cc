#include "server/base/exceptions.h"

#include <exception>

#include "server/base/log.h"

namespace linnet::server {

std::string ExceptionMessage() noexcept {
  try {
    try {
      throw;
    } catch (const std::exception& error) {
      return error.what();
    } catch (...) {
      return "an exception of an unknown type";
    }
  } catch (...) {
    return "out of memory";  // short enough to need none
  }
}

void LogException(absl::string_view event) noexcept {
  try {
    Log(LogLevel::kError, event, {{"why", ExceptionMessage()}});
  } catch (...) {  // the thread continues
  }
}

}  // namespace linnet::server
