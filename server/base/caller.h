#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/base/trace_context.h"

namespace linnet::server {

// Priority class of a call. Each class has a weight in FairQueue, so that none starves.
enum class Priority { kBatch, kNormal, kInteractive };

constexpr absl::string_view PriorityName(Priority priority) {
  return priority == Priority::kBatch    ? "batch"
         : priority == Priority::kNormal ? "normal"
                                         : "interactive";
}
// Parses "batch", "normal" or "interactive". Returns false for any other name.
inline bool ParsePriority(absl::string_view name, Priority& priority) {
  if (name == "batch") return priority = Priority::kBatch, true;
  if (name == "normal") return priority = Priority::kNormal, true;
  if (name == "interactive") return priority = Priority::kInteractive, true;
  return false;
}

// The weight of a priority in FairQueue: 1, 4 or 16.
constexpr double PriorityWeight(Priority priority) {
  return priority == Priority::kBatch ? 1 : priority == Priority::kNormal ? 4 : 16;
}

// Begins Caller.client where a token or a certificate names the subject.
inline constexpr absl::string_view kSubjectPrefix = "subject:";

// The origin of a call, for fairness, quotas and the log.
struct Caller {
  // The unit of quotas and fair queueing: the authenticated subject, else the peer's network, which
  // for IPv4 is its address.
  std::string client;
  Priority priority = Priority::kNormal;
  // Number of the call; equal for all its sequences (for a document, all its lines). 0: the
  // sequence is a call of its own.
  uint64_t call = 0;
  // For the log and the debug RPC.
  std::string request_id = {};
  TraceContext trace = {};
  // The client's own name for one of its callers, from a header; empty without one. The callers of
  // a client divide the client's share, so a client gains nothing by naming more of them.
  std::string id = {};
  // The whole address of a peer without a subject; may be empty.
  std::string address = {};
  Priority max_priority = Priority::kInteractive;  // the highest that its token allows
  // The priority of the header x-priority, if it is above max_priority. A field of the request has
  // precedence over the header, so the call is refused only if it sets none (ApplyPriority).
  std::optional<Priority> denied_priority = std::nullopt;

  // Whose cached answers it receives: those of its subject or address, not of all its network.
  const std::string& identity() const { return address.empty() ? client : address; }
  // The name in the log and in batch snapshots.
  std::string name() const { return id.empty() ? identity() : identity() + "/" + id; }
  double weight() const { return PriorityWeight(priority); }
};

// A flow of FairQueue: the calls of one client with one priority and one id. The share of a client
// at one priority is divided equally between its ids.
struct Flow {
  std::string client;
  Priority priority = Priority::kNormal;
  std::string id = {};
  auto operator<=>(const Flow&) const = default;
};
inline Flow CallerFlow(const Caller& caller) { return {caller.client, caller.priority, caller.id}; }

}  // namespace linnet::server
