#include "server/text/text_call.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/base/exceptions.h"
#include "server/identity/authentication.h"
#include "server/request/source_languages.h"
#include "server/text/call_deadline.h"
#include "server/text/detection_call.h"
#include "server/text/language_groups.h"
#include "server/text/memory_cost.h"
#include "server/text/pool_check.h"
#include "server/text/text_warnings.h"

namespace linnet::server {
namespace {

// A LanguageDetection of a few languages, including its serialised form.
constexpr int64_t kBytesPerDetection = 1024;

void CountAll(const auto& texts, Metrics& metrics) {
  for (const auto& text : texts) CountWarnings(text.warnings(), metrics);
}
void CountAllWarnings(const linnet::v1::TranslateResponse& response, Metrics& metrics) {
  CountAll(response.translations(), metrics);
}
void CountAllWarnings(const linnet::v1::SummarizeResponse& response, Metrics& metrics) {
  CountAll(response.summaries(), metrics);
}
void CountAllWarnings(const linnet::v1::ScoreResponse& /*response*/, Metrics& /*metrics*/) {}

}  // namespace

TextCalls::TextCalls(Catalog& catalog, Admission& admission, TextPool& pool, Metrics& metrics,
                     const TextLimits& limits, absl::Duration slow_call)
    : catalog_(catalog),
      admission_(admission),
      pool_(pool),
      metrics_(metrics),
      limits_(limits),
      slow_call_(slow_call) {}

TextCalls::~TextCalls() { Drain(MonotonicNow()); }

bool TextCalls::Enter() {
  MutexLock lock(mu_);
  if (draining_) return false;
  ++calls_;
  return true;
}

void TextCalls::Leave() {
  MutexLock lock(mu_);
  if (--calls_ == 0) changed_.NotifyAll();
}

absl::StatusOr<std::shared_ptr<Permit>> TextCalls::Admit(const Caller& caller, int64_t bytes) {
  ASSIGN_OR_RETURN(Permit permit, admission_.Enter(caller, bytes));
  return std::make_shared<Permit>(std::move(permit));
}

absl::StatusOr<std::shared_ptr<Permit>> TextCalls::GetPermit(const CallContext& context,
                                                             int64_t bytes) {
  if (context.permit != nullptr) return context.permit;
  return Admit(context.caller, bytes);
}

void TextCalls::CountInvalid(const absl::Status& status) const {
  if (absl::IsPermissionDenied(status)) return;
  metrics_.Rejected(absl::IsNotFound(status) ? RejectReason::kNotFound : RejectReason::kInvalid);
}

absl::Status TextCalls::CheckPrepareTime(const CallContext& context, int64_t cost) {
  const absl::Duration needed =
      pool_.EstimateTime(TextStage::kPrepare, CallerFlow(context.caller), cost);
  const absl::Duration left = context.deadline - absl::Now();
  // A deadline that has passed is reported by the call itself.
  if (needed <= left || left <= absl::ZeroDuration()) return absl::OkStatus();
  metrics_.Rejected(RejectReason::kDeadline);
  return DeadlineTooClose(
      absl::StrCat("splitting and tokenising may take ", absl::FormatDuration(needed),
                   ", the deadline is in ", absl::FormatDuration(left),
                   ": set a later one, or retry when the server is less busy"),
      {{"estimate", absl::FormatDuration(needed)}, {"remaining", absl::FormatDuration(left)}});
}

template <typename Body>
void TextCalls::InFlight(Done done, const Body& body) {
  if (!Enter()) {
    metrics_.Rejected(RejectReason::kDraining);
    return done(ShuttingDown());
  }
  std::shared_ptr<Done> answer;
  // No member is touched after the answer.
  const auto end = [this](Done& done, absl::Status status) {
    if (done == nullptr) return;
    try {
      std::exchange(done, nullptr)(std::move(status));
    } catch (...) {
      LogException("call_not_answered");
    }
    Leave();
  };
  try {
    answer = std::make_shared<Done>(std::move(done));
    body([end, answer](absl::Status status) { end(*answer, std::move(status)); });
  } catch (...) {
    end(answer != nullptr ? *answer : done, ErrorOfException());
  }
}

template <typename Request, typename Response>
void TextCalls::Start(const Request& request, Response& response, const CallContext& context,
                      OnPart on_part, Done done) {
  InFlight(std::move(done), [&](auto end) {
    StartInFlight(request, response, WithServerDeadline(limits_, context), std::move(on_part),
                  std::move(end));
  });
}

template <typename Request, typename Response, typename End>
void TextCalls::StartInFlight(const Request& request, Response& response,
                              const CallContext& context, OnPart on_part, End refuse) {
  const int64_t cost = DetectionCost(request);
  if (cost <= kBytesPerTurn) {
    return StartChecked(CheckRequest(request, catalog_, limits_), request, response, context,
                        std::move(on_part), std::move(refuse));
  }
  CheckOnPool(request, response, context, cost, std::move(on_part), std::move(refuse));
}

template <typename Request, typename Response, typename End>
void TextCalls::CheckOnPool(const Request& request, Response& response, CallContext context,
                            int64_t cost, OnPart on_part, End refuse) {
  if (context.caller.call == 0) context.caller.call = NewCall();
  const auto bytes = static_cast<int64_t>(request.SpaceUsedLong());
  auto permit = GetPermit(context, bytes);
  if (!permit.ok()) return refuse(permit.status());
  context.permit = *std::move(permit);
  const DeadlineSetter setter = context.deadline_setter;
  auto explain = [this, setter, refuse](absl::Status status) {
    refuse(ExplainDeadline(limits_, setter, std::move(status)));
  };
  if (auto status = CheckPrepareTime(context, cost); !status.ok())
    return explain(std::move(status));
  auto check = [this, &request](std::unique_ptr<LanguageDetection>* later) {
    return CheckRequest(request, catalog_, limits_, later);
  };
  auto start = [this, &request, &response, on_part = std::move(on_part), refuse](
                   absl::StatusOr<TextRequest> checked, const CallContext& context) mutable {
    StartChecked(std::move(checked), request, response, context, std::move(on_part), refuse);
  };
  std::make_shared<PoolCheck>(pool_, std::move(context), bytes, std::move(check), std::move(start),
                              std::move(explain))
      ->Start();
}

template <typename Request, typename Response, typename End>
void TextCalls::StartChecked(absl::StatusOr<TextRequest> checked, const Request& request,
                             Response& response, const CallContext& context, OnPart on_part,
                             End refuse) {
  if (!checked.ok()) {
    CountInvalid(checked.status());
    return refuse(checked.status());
  }
  CallContext own = context;
  if (absl::Status status = ApplyPriority("priority", checked->priority, own.caller); !status.ok())
    return refuse(std::move(status));
  if (own.caller.call == 0) own.caller.call = NewCall();
  auto permit = GetPermit(own, static_cast<int64_t>(request.SpaceUsedLong()));
  if (!permit.ok()) return refuse(permit.status());
  (*permit)->SetPriority(own.caller.priority);
  // Memory of the items; the texts themselves belong to the request.
  const int64_t bytes = std::ssize(checked->items) * kBytesPerItem +
                        (checked->protects == nullptr ? 0 : checked->protects->bytes());
  if (auto status = (*permit)->Hold(bytes); !status.ok()) return refuse(std::move(status));
  const int64_t cost = checked->text_bytes + std::ssize(checked->items) * kBytesPerText;
  absl::Status in_time = CheckPrepareTime(own, cost);
  // The answer cache may have the answer without an engine.
  if (in_time.ok() && checked->model != nullptr && checked->model->cache == nullptr)
    in_time = (*permit)->CheckWait(checked->model->key(), own.deadline, absl::Now());
  const DeadlineSetter setter = own.deadline_setter;
  if (!in_time.ok()) return refuse(ExplainDeadline(limits_, setter, std::move(in_time)));
  auto end = [this, setter, refuse, &response](absl::Status status) {
    if (status.ok()) CountAllWarnings(response, metrics_);
    try {
      status = ExplainDeadline(limits_, setter, status);
    } catch (const std::exception&) {  // the client gets its answer even without memory
    }
    refuse(std::move(status));
  };
  if constexpr (!std::is_same_v<Response, linnet::v1::ScoreResponse>) {
    if (!checked->others.empty() || !checked->unchanged.empty()) {
      return StartGroups(*std::move(checked), *std::move(permit), own, response, std::move(on_part),
                         std::move(end));
    }
  }
  StartStages(*std::move(checked), *std::move(permit), own, response, std::move(on_part),
              std::move(end));
}

template <typename Response>
void TextCalls::StartStages(TextRequest request, std::shared_ptr<Permit> permit,
                            const CallContext& context, Response& response, OnPart on_part,
                            Done end) {
  std::make_shared<StagedCall>(StagedCall::Services{pool_, metrics_, slow_call_},
                               MakeStages(std::move(request), response), std::move(permit), context,
                               *response.mutable_timings(), std::move(on_part), std::move(end))
      ->Start();
}

template <typename Response>
void TextCalls::StartGroups(TextRequest request, std::shared_ptr<Permit> permit,
                            const CallContext& context, Response& response, OnPart on_part,
                            Done end) {
  if (request.detected.has_value()) *response.mutable_detected_language() = *request.detected;
  std::vector<TextItem> unchanged = std::exchange(request.unchanged, {});
  std::vector<TextRequest> groups = std::exchange(request.others, {});
  if (request.model != nullptr) groups.insert(groups.begin(), std::move(request));
  const size_t count = groups.size();
  auto call = std::make_shared<LanguageGroups<Response>>(groups, std::move(unchanged), response,
                                                         std::move(permit), context.cancelled,
                                                         std::move(on_part), std::move(end));
  if (count == 0) return call->FinishWithoutGroups();
  CallContext of_group = WithoutPermit(context);
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) of_group.text_queue = absl::ZeroDuration();  // the first one counts it
    // The group must end even if this throws: the calls of others may be in flight.
    try {
      absl::StatusOr<std::shared_ptr<Permit>> own = Admit(context.caller, 0);
      if (!own.ok()) {
        call->GroupDone(i, own.status());
        continue;
      }
      StartStages(std::move(groups[i]), *std::move(own), of_group, call->response(i),
                  /*on_part=*/nullptr,
                  [call, i](absl::Status status) { call->GroupDone(i, std::move(status)); });
    } catch (...) {
      call->GroupDone(i, ErrorOfException());
    }
  }
}

void TextCalls::Translate(const linnet::v1::TranslateRequest& request,
                          linnet::v1::TranslateResponse& response, const CallContext& context,
                          Done done) {
  Start(request, response, context, nullptr, std::move(done));
}

void TextCalls::Summarize(const linnet::v1::SummarizeRequest& request,
                          linnet::v1::SummarizeResponse& response, const CallContext& context,
                          Done done) {
  Start(request, response, context, nullptr, std::move(done));
}

void TextCalls::StreamTranslate(const linnet::v1::TranslateRequest& request,
                                linnet::v1::TranslateResponse& response, const CallContext& context,
                                OnPart on_part, Done done) {
  Start(request, response, context, std::move(on_part), std::move(done));
}

void TextCalls::StreamSummarize(const linnet::v1::SummarizeRequest& request,
                                linnet::v1::SummarizeResponse& response, const CallContext& context,
                                OnPart on_part, Done done) {
  Start(request, response, context, std::move(on_part), std::move(done));
}

void TextCalls::Score(const linnet::v1::ScoreRequest& request, linnet::v1::ScoreResponse& response,
                      const CallContext& context, Done done) {
  Start(request, response, context, nullptr, [done = std::move(done)](absl::Status status) mutable {
    try {
      status = Renamed("contents", "pairs", status);  // admission knows no fields of requests
    } catch (const std::exception&) {  // the client gets its answer even without memory
    }
    done(std::move(status));
  });
}

void TextCalls::DetectLanguage(const linnet::v1::DetectLanguageRequest& request,
                               linnet::v1::DetectLanguageResponse& response,
                               const CallContext& context, Done done) {
  InFlight(std::move(done), [&](auto end) {
    StartDetection(request, response, WithServerDeadline(limits_, context), std::move(end));
  });
}

template <typename End>
void TextCalls::StartDetection(const linnet::v1::DetectLanguageRequest& request,
                               linnet::v1::DetectLanguageResponse& response,
                               const CallContext& context, End refuse) {
  int64_t text_bytes = 0;
  if (auto status = CheckContents(request.contents(), limits_, text_bytes); !status.ok()) {
    CountInvalid(status);
    return refuse(std::move(status));
  }
  Caller caller = context.caller;
  if (auto status = ApplyPriority("priority", std::nullopt, caller); !status.ok())
    return refuse(std::move(status));
  auto permit = GetPermit(context, static_cast<int64_t>(request.SpaceUsedLong()));
  if (!permit.ok()) return refuse(permit.status());
  if (auto status = (*permit)->Hold(request.contents_size() * kBytesPerDetection); !status.ok())
    return refuse(std::move(status));
  auto end = [this, setter = context.deadline_setter, permit = *std::move(permit),
              refuse](absl::Status status) mutable {
    permit.reset();
    try {
      status = ExplainDeadline(limits_, setter, WithErrorInfo(status));
    } catch (const std::exception&) {  // the client gets its answer even without memory
    }
    refuse(std::move(status));
  };
  std::make_shared<DetectionCall>(pool_, request, response, context, std::move(end))->Start();
}

linnet::v1::RequestLimits TextCalls::request_limits() const {
  linnet::v1::RequestLimits limits;
  limits.set_max_contents(limits_.max_contents);
  limits.set_max_text_bytes(limits_.max_text_bytes);
  limits.set_max_call_tokens(admission_.MaxCallTokens({}));
  limits.set_max_inflight_lines(limits_.max_inflight_lines);
  return limits;
}

void TextCalls::ListModels(linnet::v1::ListModelsResponse& response) const {
  for (linnet::v1::Model& model : catalog_.List()) *response.add_models() = std::move(model);
  *response.mutable_request_limits() = request_limits();
}

absl::Status TextCalls::GetModel(const linnet::v1::GetModelRequest& request,
                                 linnet::v1::GetModelResponse& response) const {
  absl::StatusOr<linnet::v1::Model> model = catalog_.Describe(request.name());
  if (!model.ok()) {
    CountInvalid(model.status());
    return model.status();
  }
  *response.mutable_model() = *std::move(model);
  *response.mutable_request_limits() = request_limits();
  return absl::OkStatus();
}

void TextCalls::DrainLater(std::weak_ptr<OpenDocument> document) {
  {
    MutexLock lock(mu_);
    if (!draining_) {
      if (documents_.size() >= max_documents_) {
        std::erase_if(documents_, [](const auto& each) { return each.expired(); });
        max_documents_ = std::max<size_t>(2 * documents_.size(), 16);
      }
      documents_.push_back(std::move(document));
      return;
    }
  }
  if (const auto open = document.lock()) open->Drain();
}

void TextCalls::Drain(MonotonicTime deadline) {
  std::vector<std::weak_ptr<OpenDocument>> documents;
  {
    MutexLock lock(mu_);
    draining_ = true;
    documents.swap(documents_);
  }
  for (const auto& document : documents) {
    if (const auto open = document.lock()) open->Drain();
  }
  {
    MutexLock lock(mu_);
    while (calls_ > 0 && changed_.WaitUntil(mu_, deadline)) {
    }
  }
  // Ends the remaining calls in the schedulers and refuses those that still come from the pool, so
  // that the rest ends soon.
  catalog_.Drain(MonotonicNow());
  MutexLock lock(mu_);
  while (calls_ > 0) changed_.Wait(mu_);
}

}  // namespace linnet::server
