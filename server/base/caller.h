#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/base/trace_context.h"

namespace linnet::server {

// How urgent a call is. Not strict: each class has its weight, so that none starves.
enum class Priority { kBatch, kNormal, kInteractive };

constexpr absl::string_view PriorityName(Priority priority) {
  return priority == Priority::kBatch    ? "batch"
         : priority == Priority::kNormal ? "normal"
                                         : "interactive";
}
// Whether `name` is "batch", "normal" or "interactive".
inline bool ParsePriority(absl::string_view name, Priority& priority) {
  if (name == "batch") return priority = Priority::kBatch, true;
  if (name == "normal") return priority = Priority::kNormal, true;
  if (name == "interactive") return priority = Priority::kInteractive, true;
  return false;
}

// The share of a caller with that much urgency beside others: 1, 4, 16.
constexpr double WeightOf(Priority priority) {
  return priority == Priority::kBatch ? 1 : priority == Priority::kNormal ? 4 : 16;
}

// On whose behalf a call is made.
struct Caller {
  // Who shares what the server has with the other clients: an authenticated subject, else the
  // address that the call came from.
  std::string client;
  Priority priority = Priority::kNormal;
  // The same for all that belongs to one call, which for a document is all of its lines; 0 = by
  // itself.
  uint64_t call = 0;
  // For the log, and for who looks into a batch.
  std::string request_id = {};
  TraceContext trace = {};
  // Which of the client's callers, as the call says itself; empty if it says nothing. They share
  // what the client gets, so that saying something gets nobody more.
  std::string id = {};
  Priority max_priority = Priority::kInteractive;  // that it may ask for: its token says so

  // As the log and the batch show it.
  std::string name() const { return id.empty() ? client : client + "/" + id; }
  double weight() const { return WeightOf(priority); }
};

// What takes turns: a client's calls of one priority, by their id. What a client gets at one
// priority is shared by its ids.
struct Flow {
  std::string client;
  Priority priority = Priority::kNormal;
  std::string id = {};
  auto operator<=>(const Flow&) const = default;
};
inline Flow FlowOf(const Caller& caller) { return {caller.client, caller.priority, caller.id}; }

}  // namespace linnet::server
