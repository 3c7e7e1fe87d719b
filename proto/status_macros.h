// The status macros of the whole tree. They are in proto, the layer under model, server and client;
// a header alone needs no target of its own.
#pragma once

#include <utility>

// Evaluates an expression of type absl::Status once and returns from the function if it is an
// error. The function returns absl::Status or any absl::StatusOr. In client, both may be
// grpc::Status.
//   RETURN_IF_ERROR(CheckOptions(options));
#define RETURN_IF_ERROR(...)                                                           \
  do {                                                                                 \
    if (auto linnet_status = (__VA_ARGS__); !linnet_status.ok()) return linnet_status; \
  } while (false)

// Evaluates an expression of type absl::StatusOr once and assigns its value, or returns its error
// from the function. The left side is a variable or a declaration; `auto` replaces a type that
// contains a comma. Needs the braces of a block around it: it expands to several statements.
//   ASSIGN_OR_RETURN(const Bundle bundle, ReadBundle(path));
// Names are made from __LINE__ because a template in a header would differ between sources with
// __COUNTER__.
#define ASSIGN_OR_RETURN(left, ...) LINNET_ASSIGN_OR_RETURN(__LINE__, left, __VA_ARGS__)
#define LINNET_ASSIGN_OR_RETURN(...) LINNET_ASSIGN_OR_RETURN_AT(__VA_ARGS__)
#define LINNET_ASSIGN_OR_RETURN_AT(line, left, ...)                                \
  auto linnet_result_##line = (__VA_ARGS__);                                       \
  if (!linnet_result_##line.ok()) return std::move(linnet_result_##line).status(); \
  left = *std::move(linnet_result_##line)
