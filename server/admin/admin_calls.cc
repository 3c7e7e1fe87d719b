#include "server/admin/admin_calls.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/errors.h"
#include "server/base/log.h"

namespace linnet::server {
namespace {

namespace v1 = linnet::v1;
using What = ReloadReport::Outcome::What;

constexpr int kSequencesByDefault = 100;
constexpr int kMaxSequences = 10'000;

void SetDuration(absl::Duration from, google::protobuf::Duration& to) {
  to.set_seconds(absl::IDivDuration(from, absl::Seconds(1), &from));
  to.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(from)));
}

v1::ReloadOutcome ProtoOutcome(What what) {
  switch (what) {
    case What::kLoaded:
      return v1::RELOAD_OUTCOME_LOADED;
    case What::kUnchanged:
      return v1::RELOAD_OUTCOME_UNCHANGED;
    case What::kFailed:
      return v1::RELOAD_OUTCOME_FAILED;
    case What::kRemoved:
      return v1::RELOAD_OUTCOME_REMOVED;
  }
  return v1::RELOAD_OUTCOME_UNSPECIFIED;
}

void Describe(const ReloadReport& report, v1::ReloadResponse& response) {
  SetDuration(report.duration, *response.mutable_duration());
  for (const ReloadReport::Outcome& outcome : report.outcomes) {
    v1::ModelReload& model = *response.add_models();
    model.set_folder(outcome.folder);
    model.set_outcome(ProtoOutcome(outcome.what));
    model.set_model(outcome.model);
    model.set_model_version(outcome.model_version);
    if (!outcome.status.ok())
      *model.mutable_error() = ToProto(ModelNotLoaded(outcome.folder, outcome.status));
  }
}

v1::EngineState ProtoState(const EngineHealth& health) {
  switch (health.state) {
    case EngineHealth::State::kUp:
      return v1::ENGINE_STATE_UP;
    case EngineHealth::State::kDown:
      return v1::ENGINE_STATE_DOWN;
    case EngineHealth::State::kFailed:
      return v1::ENGINE_STATE_STUCK;
  }
  return v1::ENGINE_STATE_UNSPECIFIED;
}

v1::Priority ProtoPriority(Priority priority) {
  switch (priority) {
    case Priority::kBatch:
      return v1::PRIORITY_BATCH;
    case Priority::kNormal:
      return v1::PRIORITY_NORMAL;
    case Priority::kInteractive:
      return v1::PRIORITY_INTERACTIVE;
  }
  return v1::PRIORITY_UNSPECIFIED;
}

void Describe(const SequenceSnapshot& snapshot, absl::Time now, v1::BatchSequence& sequence) {
  sequence.set_request_id(snapshot.caller.request_id);
  sequence.set_call(snapshot.caller.call);
  sequence.set_client(snapshot.caller.name());
  sequence.set_priority(ProtoPriority(snapshot.caller.priority));
  sequence.set_phase(snapshot.running ? v1::SEQUENCE_PHASE_RUNNING : v1::SEQUENCE_PHASE_WAITING);
  sequence.set_rows(snapshot.rows);
  sequence.set_source_tokens(snapshot.source_tokens);
  sequence.set_max_target_tokens(snapshot.max_target_tokens);
  sequence.set_steps(snapshot.steps);
  SetDuration(now - snapshot.submitted, *sequence.mutable_age());
  if (snapshot.running) SetDuration(now - snapshot.added_at, *sequence.mutable_running_for());
  if (snapshot.deadline != absl::InfiniteFuture())
    SetDuration(snapshot.deadline - now, *sequence.mutable_time_left());
}

// Collects the batch snapshots of several models. The last scheduler to deliver finishes the call.
struct SnapshotCollector {
  std::vector<std::shared_ptr<ServedModel>> models;
  std::vector<v1::ModelBatch> batches;  // one per model, each written by one thread
  std::atomic<size_t> missing;
  v1::GetBatchResponse& response;
  AdminCalls::Done done;

  void Collected() {
    if (missing.fetch_sub(1) > 1) return;
    for (v1::ModelBatch& batch : batches) *response.add_models() = std::move(batch);
    done(absl::OkStatus());
  }
};

void Describe(const ServedModel& model, const BatchSnapshot& snapshot, v1::ModelBatch& batch) {
  const EngineHealth health = model.scheduler->health();
  batch.set_model(model.key());
  batch.set_model_version(model.bundle.manifest.version());
  batch.set_engine_state(ProtoState(health));
  batch.set_engine_restarts(health.restarts);
  batch.set_rows(model.scheduler->engine_info().rows);
  if (snapshot.in_call_for > absl::ZeroDuration()) {
    SetDuration(snapshot.in_call_for, *batch.mutable_in_call_for());
    return;
  }
  batch.set_rows_in_use(snapshot.rows_in_use);
  batch.set_running(snapshot.running);
  batch.set_waiting(snapshot.waiting);
  const absl::Time now = absl::Now();
  for (const SequenceSnapshot& sequence : snapshot.sequences)
    Describe(sequence, now, *batch.add_sequences());
}

std::optional<LogLevel> LevelFromProto(v1::LogLevel level) {
  switch (level) {
    case v1::LOG_LEVEL_DEBUG:
      return LogLevel::kDebug;
    case v1::LOG_LEVEL_INFO:
      return LogLevel::kInfo;
    case v1::LOG_LEVEL_WARNING:
      return LogLevel::kWarning;
    case v1::LOG_LEVEL_ERROR:
      return LogLevel::kError;
    default:
      return std::nullopt;
  }
}

v1::LogLevel ProtoLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return v1::LOG_LEVEL_DEBUG;
    case LogLevel::kInfo:
      return v1::LOG_LEVEL_INFO;
    case LogLevel::kWarning:
      return v1::LOG_LEVEL_WARNING;
    case LogLevel::kError:
      return v1::LOG_LEVEL_ERROR;
  }
  return v1::LOG_LEVEL_UNSPECIFIED;
}

}  // namespace

void AdminCalls::Reload(const v1::ReloadRequest& request, v1::ReloadResponse& response, Done done) {
  if (request.no_wait()) return done(reloader_.Ask(request.model()));
  // Exactly one of the two copies is called. Shared, because a function that was moved from cannot
  // be called.
  auto end = std::make_shared<Done>(std::move(done));
  const absl::Status asked =
      reloader_.Ask(request.model(), [&response, end](const ReloadReport& report) {
        if (!report.status.ok()) {
          const bool explained = !ErrorReason(report.status).empty();
          return (*end)(explained ? report.status : RegistryUnreadable(report.status));
        }
        Describe(report, response);
        (*end)(absl::OkStatus());
      });
  if (!asked.ok()) (*end)(asked);
}

void AdminCalls::GetBatch(const v1::GetBatchRequest& request, v1::GetBatchResponse& response,
                          Done done) {
  if (request.max_sequences() < 0 || request.max_sequences() > kMaxSequences) {
    return done(BadField("max_sequences", Reason::kBadSetting,
                         absl::StrCat("is ", request.max_sequences(), ", at most ", kMaxSequences,
                                      " can be listed")));
  }
  std::vector<std::shared_ptr<ServedModel>> models;
  if (request.model().empty()) {
    models = catalog_.models();
  } else {
    auto model = catalog_.Named(request.model());
    if (!model.ok()) return done(model.status());
    models.push_back(*std::move(model));
  }
  if (models.empty()) return done(absl::OkStatus());
  const int max = request.max_sequences() == 0 ? kSequencesByDefault : request.max_sequences();
  // Shared by the schedulers, each of which delivers its snapshot. The catalog holds the models as
  // well, so that no model is destroyed on its own scheduler's thread.
  const std::shared_ptr<SnapshotCollector> collector(
      new SnapshotCollector{.models = models,
                            .batches = std::vector<v1::ModelBatch>(models.size()),
                            .missing = models.size(),
                            .response = response,
                            .done = std::move(done)});
  for (size_t i = 0; i < models.size(); ++i) {
    models[i]->scheduler->ShowBatch(max, [collector, i](const BatchSnapshot& snapshot) {
      Describe(*collector->models[i], snapshot, collector->batches[i]);
      collector->Collected();
    });
  }
}

absl::Status AdminCalls::SetLogLevel(const v1::SetLogLevelRequest& request,
                                     v1::SetLogLevelResponse& response) {
  if (!v1::LogLevel_IsValid(request.level())) {
    return BadField(
        "level", Reason::kBadSetting,
        absl::StrCat("is ", static_cast<int>(request.level()), ", which is not a log level"));
  }
  response.set_previous_level(ProtoLevel(ChangeLogLevel(LevelFromProto(request.level()))));
  response.set_level(ProtoLevel(CurrentLogLevel()));
  return absl::OkStatus();
}

}  // namespace linnet::server
