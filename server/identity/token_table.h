#pragma once

#include <string>
#include <unordered_map>

#include "absl/hash/hash.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/caller.h"

namespace linnet::server {

// The rights and the name that a token grants.
struct Grant {
  std::string name;
  bool inference = false;                          // all methods except those of admin
  bool admin = false;                              // AdminService, which shows other clients
  Priority max_priority = Priority::kInteractive;  // max priority of its calls
};

// The bearer tokens of a file, one per line: TOKEN NAME RIGHTS, where rights are `inference`,
// `admin` or both with a comma, optionally followed by `max-priority=batch`, `normal` or
// `interactive`. '#' begins a comment. A name may have several tokens, so that they can be replaced
// one by one. Immutable.
class TokenTable {
 public:
  // InvalidArgumentError names the line and never the token.
  static absl::StatusOr<TokenTable> Parse(absl::string_view text);

  // Returns the grant of a token, or nullptr. The time depends on the hash of the token, which is
  // seeded anew in each process, and on its length, but not on how many of its characters are
  // right.
  const Grant* Find(absl::string_view token) const;
  size_t size() const { return grants_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(absl::string_view token) const { return absl::HashOf(token); }
  };
  struct ConstantTimeEqual {
    using is_transparent = void;
    bool operator()(absl::string_view a, absl::string_view b) const;
  };
  std::unordered_map<std::string, Grant, Hash, ConstantTimeEqual> grants_;
};

}  // namespace linnet::server
