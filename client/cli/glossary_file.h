#pragma once

#include <string>

#include "absl/status/status.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// Adds the terms of a file: on each line one, a tab, and what becomes of it; without a tab it stays
// as it is. Empty lines are passed over. INVALID_ARGUMENT, with the line, if the file cannot be
// read, has another form, or says a term twice.
absl::Status ReadGlossary(const std::string& file, v1::Glossary* glossary);

}  // namespace linnet::client
