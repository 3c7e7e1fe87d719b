#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace linnet::server {

// For the top function of a thread, which catches what nobody else has caught, std::bad_alloc
// included. Call them while an exception is being handled.

// Its message.
std::string ExceptionMessage() noexcept;
// Logs an error `event` with the message as `why`. Without memory for the line, nothing is logged.
void LogException(absl::string_view event) noexcept;

}  // namespace linnet::server
