#pragma once

#include <string>

#include "absl/status/status.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// Adds the terms of a file. A line is a term, a tab and its translation; a term without a tab is
// kept as it is. Empty lines are skipped. INVALID_ARGUMENT, with the line, if the file cannot be
// read, has another form (commas for tabs in all lines) or repeats a term.
absl::Status ReadGlossary(const std::string& file, v1::Glossary* glossary);

}  // namespace linnet::client
