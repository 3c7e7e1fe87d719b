#include "server/schedule/guarded_engine.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

namespace linnet::server {
namespace {

// Returns the result of the call, or an INTERNAL error if it throws.
template <typename Call>
auto Catch(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the engine threw: ", error.what()));
  } catch (...) {
    return absl::InternalError("the engine threw an exception of unknown type");
  }
}

absl::Status NoEngine() { return absl::UnavailableError("the engine is being loaded"); }

}  // namespace

GuardedEngine::GuardedEngine(std::unique_ptr<model::Engine> engine, StallDetector& detector,
                             absl::Duration stall_timeout)
    : info_(engine->info()),
      detector_(detector),
      stall_timeout_(stall_timeout),
      engine_(std::move(engine)) {}

GuardedEngine::GuardedEngine(const model::EngineInfo& info, StallDetector& detector,
                             absl::Duration stall_timeout)
    : info_(info), detector_(detector), stall_timeout_(stall_timeout) {}

bool GuardedEngine::HasRoom(std::span<const model::SequenceInput> sequences) const {
  return engine_ != nullptr && engine_->HasRoom(sequences);
}

absl::Status GuardedEngine::Check(const model::SequenceInput& sequence) const {
  MutexLock lock(mu_);
  return engine_ != nullptr ? engine_->Check(sequence) : model::CheckSequence(sequence, info_);
}

absl::Status GuardedEngine::Add(std::span<const model::SequenceInput> sequences) {
  if (!broken_.ok()) return broken_;
  if (engine_ == nullptr) return NoEngine();
  bool threw = true;
  absl::Status status = detector_.Watch(stall_timeout_, [&] {
    return Catch([&] {
      absl::Status status = engine_->Add(sequences);
      threw = false;
      return status;
    });
  });
  // An error that Add returns added no sequence and left the running ones unchanged.
  if (threw || model::IsDeviceLost(status)) broken_ = status;
  return status;
}

absl::StatusOr<std::vector<model::SequenceEvent>> GuardedEngine::Step() {
  if (!broken_.ok()) return broken_;
  if (engine_ == nullptr) return NoEngine();
  absl::StatusOr<std::vector<model::SequenceEvent>> events =
      detector_.Watch(stall_timeout_, [&] { return Catch([&] { return engine_->Step(); }); });
  if (!events.ok() && !absl::IsResourceExhausted(events.status())) broken_ = events.status();
  return events;
}

void GuardedEngine::SetPaused(model::SequenceId id, bool paused) {
  if (engine_ != nullptr) paused ? engine_->Pause(id) : engine_->Resume(id);
}

void GuardedEngine::Release(model::SequenceId id) {
  if (!detector_.stalled() && engine_ != nullptr) engine_->Release(id);
}

bool GuardedEngine::encoding() const { return engine_ != nullptr && engine_->encoding(); }
int GuardedEngine::sequences() const { return engine_ == nullptr ? 0 : engine_->sequences(); }
int GuardedEngine::rows_in_use() const { return engine_ == nullptr ? 0 : engine_->rows_in_use(); }

void GuardedEngine::Remove() {
  std::unique_ptr<model::Engine> removed;
  MutexLock lock(mu_);
  removed = std::move(engine_);
}

void GuardedEngine::Replace(std::unique_ptr<model::Engine> engine) {
  MutexLock lock(mu_);
  engine_ = std::move(engine);
  broken_ = absl::OkStatus();
}

}  // namespace linnet::server
