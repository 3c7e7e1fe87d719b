// model::Shortlist::Parse: any bytes as the shortlist of a model with 4 source and 10 target
// tokens, or, after a 'w', with 4 and 70,000, whose ids take four bytes.
#include "model/runtime/search/shortlist.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using linnet::model::Shortlist;
  using linnet::model::TokenId;
  static const bool quiet = [] {
    google::protobuf::SetLogHandler(nullptr);  // It prints a line for each text that is not UTF-8.
    return true;
  }();
  constexpr int kSources = 4;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const bool wide = quiet && bytes.starts_with('w');
  if (wide) bytes.erase(0, 1);
  const int targets = wide ? 70000 : 10;
  const auto list = Shortlist::Parse(bytes, kSources, targets, {});
  if (!list.ok()) {
    FUZZ_CHECK(list.status().code() == absl::StatusCode::kFailedPrecondition);
    FUZZ_CHECK(!list.status().message().empty());
    return 0;
  }
  // An accepted list gives every source distinct tokens of the vocabulary, the special ones among
  // them, and no fewer than each of its tokens alone.
  std::vector<TokenId> source(kSources);
  for (int i = 0; i < kSources; ++i) source[i] = i;
  const std::vector<TokenId> all = list->TokensFor(source, {});
  FUZZ_CHECK(std::ranges::adjacent_find(all, std::greater_equal()) == all.end());
  FUZZ_CHECK(all.front() >= 0 && all.back() < targets);
  FUZZ_CHECK(std::ranges::binary_search(all, 2) && std::ranges::binary_search(all, 3));
  for (const TokenId token : source) {
    const std::vector<TokenId> some = list->TokensFor({&token, 1}, {});
    FUZZ_CHECK(std::ranges::includes(all, some));
  }
  return 0;
}
