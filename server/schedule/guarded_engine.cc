#include "server/schedule/guarded_engine.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace linnet::server {
namespace {

// What the call returns, or what it throws as an INTERNAL error.
template <typename Call>
auto Catch(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the engine threw: ", error.what()));
  } catch (...) {
    return absl::InternalError("the engine threw something");
  }
}

absl::Status NoEngine() { return absl::UnavailableError("the engine is being made again"); }

}  // namespace

GuardedEngine::GuardedEngine(const model::EngineInfo& info, std::unique_ptr<model::Engine> engine)
    : info_(info), engine_(std::move(engine)) {}

bool GuardedEngine::HasRoom(std::span<const model::SequenceInput> sequences) const {
  return engine_ != nullptr && engine_->HasRoom(sequences);
}

absl::Status GuardedEngine::Check(const model::SequenceInput& sequence) const {
  MutexLock lock(mu_);
  return engine_ != nullptr ? engine_->Check(sequence) : model::CheckSequence(sequence, info_);
}

void GuardedEngine::Enter() {
  MutexLock lock(mu_);
  entered_ = absl::Now();
}

absl::Status GuardedEngine::Leave(absl::Status status) {
  MutexLock lock(mu_);
  entered_ = absl::InfiniteFuture();
  if (given_up_) status = absl::InternalError("the engine did not answer for too long");
  return status;
}

absl::Status GuardedEngine::Seat(std::span<const model::SequenceInput> sequences) {
  if (!broken_.ok()) return broken_;
  if (engine_ == nullptr) return NoEngine();
  bool threw = true;
  Enter();
  absl::Status status = Catch([&] {
    absl::Status status = engine_->Seat(sequences);
    threw = false;
    return status;
  });
  status = Leave(std::move(status));
  MutexLock lock(mu_);
  // What fails in its own terms has seated nobody and leaves the others as they were.
  if (threw || given_up_) broken_ = status;
  return status;
}

absl::StatusOr<std::vector<model::SequenceEvent>> GuardedEngine::Step() {
  if (!broken_.ok()) return broken_;
  if (engine_ == nullptr) return NoEngine();
  Enter();
  absl::StatusOr<std::vector<model::SequenceEvent>> events = Catch([&] { return engine_->Step(); });
  if (absl::Status status = Leave(events.status()); !status.ok()) {
    if (!absl::IsResourceExhausted(status)) broken_ = status;
    return status;
  }
  return events;
}

void GuardedEngine::Release(model::SequenceId id) {
  if (engine_ != nullptr) engine_->Release(id);
}

int GuardedEngine::sequences() const { return engine_ == nullptr ? 0 : engine_->sequences(); }
int GuardedEngine::rows_in_use() const { return engine_ == nullptr ? 0 : engine_->rows_in_use(); }

bool GuardedEngine::given_up() const {
  MutexLock lock(mu_);
  return given_up_;
}

void GuardedEngine::Remove() {
  std::unique_ptr<model::Engine> removed;
  {
    MutexLock lock(mu_);
    removed = std::move(engine_);
  }
}

void GuardedEngine::Replace(std::unique_ptr<model::Engine> engine) {
  MutexLock lock(mu_);
  engine_ = std::move(engine);
  broken_ = absl::OkStatus();
  given_up_ = false;
}

absl::Time GuardedEngine::entered() const {
  MutexLock lock(mu_);
  return entered_;
}

bool GuardedEngine::GiveUpIfStuck(absl::Time begun_by, absl::FunctionRef<void()> rescue) {
  MutexLock lock(mu_);
  if (given_up_ || entered_ > begun_by) return false;
  given_up_ = true;
  rescue();
  return true;
}

}  // namespace linnet::server
