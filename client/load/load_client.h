#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/library/client.h"
#include "client/load/mix.h"
#include "client/run/abandonment.h"
#include "client/run/record.h"

namespace linnet::client {

// The shares of all calls whose callers do not wait for the answer, each from 0 to 1, together at
// most 1.
struct AbandonmentOptions {
  double deadlines = 0;    // calls with a deadline of `after`
  double cancels = 0;      // calls that are cancelled
  double disconnects = 0;  // calls on a connection of their own that is cut
  absl::Duration after = absl::Milliseconds(100);
};

// A model that answered calls, and what it runs on; that is empty if the server did not say.
struct AnsweringModel {
  std::string name, version, device, compute_type;
};

// Makes the calls of a load run. The kind of a call and its abandonment depend on its number alone.
// Thread-safe.
class LoadClient {
 public:
  // Connects `channels` channels, so that the first calls do not include it. Returns an error if an
  // option is out of its range or the server does not answer; CANCELLED if `stop` comes first.
  static absl::StatusOr<std::unique_ptr<LoadClient>> Connect(
      const ClientOptions& options, int channels, std::vector<CallKind> kinds,
      const AbandonmentOptions& abandonment, uint64_t seed, const std::stop_token& stop = {});

  // Makes call number `index` on the channel of that number and blocks until it has ended.
  CallOutcome Call(int64_t index, int channel);

  // Cancels every call, in flight or future.
  void Cancel();

  const std::vector<CallKind>& kinds() const { return kinds_; }
  // The models that answered calls so far, by name and version.
  std::vector<AnsweringModel> AnsweringModels() const;

 private:
  LoadClient(const ClientOptions& options, std::vector<Client> clients, std::vector<CallKind> kinds,
             const AbandonmentOptions& abandonment, uint64_t seed);

  Abandonment DrawAbandonment(int64_t index) const;
  // Asks for the served models, for AnsweringModels. A server that does not list them is measured
  // all the same.
  void ListModels();
  template <typename Response>
  CallOutcome MakeOutcome(const absl::StatusOr<Response>& response);

  const ClientOptions options_;
  std::vector<Client> clients_;
  const std::vector<CallKind> kinds_;
  const AbandonmentOptions abandonment_;
  const uint64_t seed_;
  const Cancellation cancellation_;  // of the calls on connections of their own
  DelayedActions delayed_;
  using NameAndVersion = std::pair<std::string, std::string>;
  std::map<NameAndVersion, AnsweringModel> served_;  // when the run began
  mutable absl::Mutex mu_;
  std::set<NameAndVersion> answering_ ABSL_GUARDED_BY(mu_);
};

}  // namespace linnet::client
