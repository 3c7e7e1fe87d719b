#include "model/runtime/search/shortlist.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "linnet/v1/bundle.pb.h"
#include "proto/read_file.h"

namespace linnet::model {

absl::StatusOr<Shortlist> Shortlist::Read(const std::filesystem::path& file, int source_tokens,
                                          int target_tokens, const SpecialTokens& special) {
  const auto wrong = [&](auto... parts) {
    return absl::FailedPreconditionError(absl::StrCat(file.string(), parts...));
  };
  const absl::StatusOr<std::string> json = ReadFile(file);
  if (!json.ok()) return absl::FailedPreconditionError(json.status().message());
  linnet::v1::Shortlist list;
  if (const auto parsed = google::protobuf::util::JsonStringToMessage(*json, &list); !parsed.ok()) {
    return wrong(" is no shortlist: ", std::string(parsed.message()));
  }
  if (list.counts_size() != source_tokens) {
    return wrong(" has counts of ", list.counts_size(), " source tokens, the model has ",
                 source_tokens);
  }
  Shortlist shortlist;
  shortlist.begins_.push_back(0);
  for (const int32_t count : list.counts()) {
    if (count < 0) return wrong(" has a count of ", count);
    shortlist.begins_.push_back(shortlist.begins_.back() + count);
  }
  if (shortlist.begins_.back() != list.candidates_size()) {
    return wrong(" has ", list.candidates_size(), " candidates, its counts sum up to ",
                 shortlist.begins_.back());
  }
  shortlist.always_.assign(list.always().begin(), list.always().end());
  shortlist.always_.insert(shortlist.always_.end(), {special.eos, special.unk});
  shortlist.candidates_.assign(list.candidates().begin(), list.candidates().end());
  for (const auto* tokens : {&shortlist.always_, &shortlist.candidates_}) {
    for (const TokenId token : *tokens) {
      if (token < 0 || token >= target_tokens) {
        return wrong(" has the target token ", token, ", the model has ", target_tokens);
      }
    }
  }
  return shortlist;
}

std::vector<TokenId> Shortlist::TokensFor(std::span<const TokenId> source,
                                          std::span<const TokenId> more) const {
  std::vector<TokenId> tokens = always_;
  tokens.insert(tokens.end(), more.begin(), more.end());
  for (const TokenId token : source) {
    tokens.insert(tokens.end(), candidates_.begin() + begins_[token],
                  candidates_.begin() + begins_[token + 1]);
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

}  // namespace linnet::model
