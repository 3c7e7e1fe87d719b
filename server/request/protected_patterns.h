#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/runtime/tokenizer/copied_runs.h"

namespace linnet::server {

// What a translation must not change: variables of printf, Python, Rust, ICU's MessageFormat,
// mustache and i18next, URLs, e-mail addresses, paths, @names, #tags, long digit strings, IBAN, IP
// addresses, versions and codes of letters and digits. Thread-safe.
class ProtectedPatterns {
 public:
  // In any order; they may overlap. The time is linear in the text.
  std::vector<model::TextRun> Find(absl::string_view text) const;
};

}  // namespace linnet::server
