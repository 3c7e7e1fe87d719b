#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/caller.h"

namespace linnet::server {

// What the bearer of a token may do, and under which name.
struct Grant {
  std::string name;
  bool inference = false;  // every method but those of admin
  bool admin = false;      // AdminService, and what shows the other clients: channelz
  Priority max_priority = Priority::kInteractive;  // of its calls
};

// The bearer tokens of a file, a line each: TOKEN NAME RIGHTS, where rights are `inference`,
// `admin` or both with a comma, optionally followed by `max-priority=batch`, `normal` or
// `interactive`; '#' begins a comment. One name may have several tokens, so that they can be
// changed one by one. Immutable.
class TokenTable {
 public:
  // InvalidArgumentError names the line and never the token.
  static absl::StatusOr<TokenTable> Parse(absl::string_view text);

  // nullptr if nobody has that token. Takes as long for a token that is nearly right as for any
  // other of its length.
  const Grant* Find(absl::string_view token) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string token;
    Grant grant;
  };
  std::vector<Entry> entries_;
};

}  // namespace linnet::server
