#include "model/runtime/search/shortlist.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "linnet/v1/bundle.pb.h"
#include "proto/read_file.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers of the file are copied");

constexpr int64_t kMaxShortlistBytes = int64_t{1} << 30;
constexpr absl::string_view kMagic = "LNSHORT1";
constexpr size_t kMaxNarrowTokens = size_t{std::numeric_limits<uint16_t>::max()} + 1;

struct Header {
  uint32_t source_tokens, target_tokens, always, candidates;
};

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}

absl::Status WrongTarget(int64_t token, int64_t target_tokens) {
  return Wrong("has the target token ", token, ", the model has ", target_tokens);
}

absl::Status WrongSources(int64_t sources, int source_tokens) {
  return Wrong("has counts of ", sources, " source tokens, the model has ", source_tokens);
}

// Takes `count` numbers from the front of `bytes`, which has them.
template <typename Number>
std::vector<Number> Take(absl::string_view& bytes, size_t count) {
  std::vector<Number> numbers(count);
  if (count > 0) std::memcpy(numbers.data(), bytes.data(), count * sizeof(Number));
  bytes.remove_prefix(count * sizeof(Number));
  return numbers;
}

}  // namespace

absl::StatusOr<Shortlist> Shortlist::Read(const std::filesystem::path& file, int source_tokens,
                                          int target_tokens, const SpecialTokens& special) {
  const absl::StatusOr<std::string> bytes = ReadFile(file, kMaxShortlistBytes);
  if (!bytes.ok()) return absl::FailedPreconditionError(bytes.status().message());
  auto shortlist = Parse(*bytes, source_tokens, target_tokens, special);
  if (!shortlist.ok()) return Wrong(file.string(), " ", shortlist.status().message());
  return shortlist;
}

absl::StatusOr<Shortlist> Shortlist::Parse(absl::string_view bytes, int source_tokens,
                                           int target_tokens, const SpecialTokens& special) {
  ASSIGN_OR_RETURN(Shortlist shortlist, absl::StartsWith(bytes, kMagic)
                                            ? ParseBinary(bytes, target_tokens)
                                            : ParseJson(bytes, source_tokens, target_tokens));
  RETURN_IF_ERROR(shortlist.Check(source_tokens, target_tokens));
  shortlist.always_.insert(shortlist.always_.end(), {special.eos, special.unk});
  return shortlist;
}

absl::StatusOr<Shortlist> Shortlist::ParseBinary(absl::string_view bytes, int target_tokens) {
  const size_t size = bytes.size();
  bytes.remove_prefix(kMagic.size());
  if (bytes.size() < sizeof(Header)) {
    return Wrong("is no shortlist: it has ", size, " bytes, its header needs ",
                 kMagic.size() + sizeof(Header));
  }
  const Header header = Take<Header>(bytes, 1).front();
  if (header.target_tokens != static_cast<uint32_t>(target_tokens)) {
    return Wrong("is of ", header.target_tokens, " target tokens, the model has ", target_tokens);
  }
  const bool narrow = header.target_tokens <= kMaxNarrowTokens;
  const uint64_t needed = sizeof(uint32_t) * (uint64_t{header.source_tokens} + 1) +
                          (narrow ? sizeof(uint16_t) : sizeof(uint32_t)) *
                              (uint64_t{header.always} + uint64_t{header.candidates});
  if (bytes.size() != needed) {
    return Wrong("has ", size, " bytes, its header stands for ", size - bytes.size() + needed,
                 ": it is damaged");
  }
  Shortlist shortlist;
  shortlist.begins_ = Take<uint32_t>(bytes, size_t{header.source_tokens} + 1);
  const auto take = [&]<typename Id>(Id) {
    const std::vector<Id> always = Take<Id>(bytes, header.always);
    shortlist.always_.assign(always.begin(), always.end());
    shortlist.candidates_ = Take<Id>(bytes, header.candidates);
  };
  narrow ? take(uint16_t{}) : take(uint32_t{});
  return shortlist;
}

absl::StatusOr<Shortlist> Shortlist::ParseJson(absl::string_view bytes, int source_tokens,
                                               int target_tokens) {
  linnet::v1::Shortlist list;
  const auto parsed = google::protobuf::util::JsonStringToMessage(std::string(bytes), &list);
  if (!parsed.ok()) return Wrong("is no shortlist: ", std::string(parsed.message()));
  if (list.counts_size() != source_tokens) return WrongSources(list.counts_size(), source_tokens);
  Shortlist shortlist;
  shortlist.begins_.push_back(0);
  int64_t sum = 0;
  for (const int32_t count : list.counts()) {
    if (count < 0) return Wrong("has a count of ", count);
    sum += count;
    shortlist.begins_.push_back(static_cast<uint32_t>(sum));
  }
  if (sum != list.candidates_size()) {
    return Wrong("has ", list.candidates_size(), " candidates, its counts sum up to ", sum);
  }
  // Before they are narrowed.
  for (const auto* tokens : {&list.always(), &list.candidates()}) {
    for (const TokenId token : *tokens) {
      if (token < 0 || token >= target_tokens) return WrongTarget(token, target_tokens);
    }
  }
  shortlist.always_.assign(list.always().begin(), list.always().end());
  const auto keep = [&]<typename Id>(Id) {
    shortlist.candidates_ = std::vector<Id>(list.candidates().begin(), list.candidates().end());
  };
  static_cast<size_t>(target_tokens) <= kMaxNarrowTokens ? keep(uint16_t{}) : keep(uint32_t{});
  return shortlist;
}

// Everything that TokensFor relies on.
absl::Status Shortlist::Check(int source_tokens, int target_tokens) const {
  const int64_t sources = std::ssize(begins_) - 1;
  if (sources != source_tokens) return WrongSources(sources, source_tokens);
  for (const TokenId token : always_) {
    if (token < 0 || token >= target_tokens) return WrongTarget(token, target_tokens);
  }
  return std::visit(
      [&](const auto& candidates) {
        if (begins_.front() != 0 || begins_.back() != candidates.size() ||
            !std::is_sorted(begins_.begin(), begins_.end())) {
          return Wrong("has offsets that do not ascend from 0 to ", candidates.size(),
                       ": it is damaged");
        }
        if (candidates.empty()) return absl::OkStatus();
        const auto highest = *std::max_element(candidates.begin(), candidates.end());
        return highest < static_cast<uint32_t>(target_tokens) ? absl::OkStatus()
                                                              : WrongTarget(highest, target_tokens);
      },
      candidates_);
}

std::vector<TokenId> Shortlist::TokensFor(std::span<const TokenId> source,
                                          std::span<const TokenId> more) const {
  std::vector<TokenId> tokens = always_;
  tokens.insert(tokens.end(), more.begin(), more.end());
  std::visit(
      [&](const auto& candidates) {
        for (const TokenId token : source) {
          tokens.insert(tokens.end(), candidates.begin() + begins_[token],
                        candidates.begin() + begins_[token + 1]);
        }
      },
      candidates_);
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

}  // namespace linnet::model
