#include "server/identity/token_table.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace linnet::server {
namespace {

constexpr size_t kMinTokenBytes = 16;  // 64 bits in hex

// The characters that a client can send in a header; no others are in a token.
bool IsVisibleAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), absl::ascii_isgraph);
}

// A client's name is in the log and in metrics.
bool IsName(absl::string_view text) {
  return std::none_of(text.begin(), text.end(), absl::ascii_iscntrl);
}

}  // namespace

bool TokenTable::ConstantTimeEqual::operator()(absl::string_view a, absl::string_view b) const {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

absl::StatusOr<TokenTable> TokenTable::Parse(absl::string_view text) {
  TokenTable table;
  int number = 0;
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // a byte order mark: no client would send it
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    auto wrong = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number, " of the tokens ", what,
          ": each is TOKEN NAME RIGHTS, with rights inference, admin or both and a "
          "token of at least ",
          kMinTokenBytes, " characters; max-priority=batch, normal or interactive may follow"));
    };
    const std::vector<std::string> words =
        absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    if (words.size() != 3 && words.size() != 4)
      return wrong(absl::StrCat("has ", words.size(), " words"));
    if (words[0].size() < kMinTokenBytes)
      return wrong(absl::StrCat("has a token of ", words[0].size(), " characters"));
    if (!IsVisibleAscii(words[0]))
      return wrong(
          "has a token with characters other than visible ASCII, which no client can send");
    if (!IsName(words[1])) return wrong("has a name with control characters");
    Grant grant{.name = words[1]};
    for (absl::string_view right : absl::StrSplit(words[2], ',')) {
      if (right != "inference" && right != "admin") return wrong("has an unknown right");
      (right == "admin" ? grant.admin : grant.inference) = true;
    }
    if (words.size() == 4) {
      absl::string_view name = words[3];
      if (!absl::ConsumePrefix(&name, "max-priority=") || !ParsePriority(name, grant.max_priority))
        return wrong("has a fourth word that is not a max-priority");
    }
    if (!table.grants_.emplace(words[0], std::move(grant)).second)
      return wrong("repeats a token of an earlier line");
  }
  if (table.grants_.empty())
    return absl::InvalidArgumentError("the file has no tokens: no client could call");
  return table;
}

const Grant* TokenTable::Find(absl::string_view token) const {
  const auto found = grants_.find(token);
  return found == grants_.end() ? nullptr : &found->second;
}

}  // namespace linnet::server
