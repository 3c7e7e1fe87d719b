// TextCalls: starts the calls of the models that answer a checked request.
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/errors.h"
#include "server/base/exceptions.h"
#include "server/text/decoding_call.h"
#include "server/text/first_call.h"
#include "server/text/language_groups.h"
#include "server/text/prepared_text.h"
#include "server/text/text_call.h"
#include "server/text/text_reply.h"

namespace linnet::server {
namespace {

// Memory of a response and of its serialised form.
int64_t ReplyBytes(const google::protobuf::Message& response) {
  return 2 * static_cast<int64_t>(response.SpaceUsedLong());
}

}  // namespace

// Fills the scores of a call in one step: each is that of one segment.
struct ScoreFiller {
  const TextRequest& request;
  const std::vector<PreparedText>& prepared;
  linnet::v1::ScoreResponse& response;
  ScoreFiller(const TextRequest& request, const std::vector<PreparedText>& prepared,
              linnet::v1::ScoreResponse& response)
      : request(request), prepared(prepared), response(response) {}
  bool Step(int64_t /*work*/) const {
    FillReply(request, prepared, response);
    return true;
  }
};

template <typename Response>
using Filler = std::conditional_t<std::is_same_v<Response, linnet::v1::ScoreResponse>, ScoreFiller,
                                  ReplyFiller<Response>>;

template <typename Response>
void TextCalls::StartModel(TextRequest request, std::shared_ptr<Permit> permit,
                           const CallContext& context, Response& response, OnPart on_part,
                           Done end) {
  if constexpr (std::is_same_v<Response, linnet::v1::TranslateResponse>) {
    if (request.second != nullptr) {
      return StartTwo(std::move(request), std::move(permit), context, response, std::move(on_part),
                      std::move(end));
    }
  }
  auto fill = [&response, filler = std::shared_ptr<Filler<Response>>()](
                  const TextRequest& asked, const std::vector<PreparedText>& prepared,
                  int64_t work) mutable -> std::optional<DecodingCall::Reply> {
    if (filler == nullptr) filler = std::make_shared<Filler<Response>>(asked, prepared, response);
    if (!filler->Step(work)) return std::nullopt;
    AddDetectedLanguages(asked.items, response);
    return DecodingCall::Reply{*response.mutable_timings(), ReplyBytes(response)};
  };
  std::make_shared<DecodingCall>(pool_, metrics_, slow_call_, limits_.max_segments,
                                 std::move(request), std::move(permit), context, std::move(fill),
                                 std::move(on_part), std::move(end))
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
  for (size_t i = 0; i < count; ++i) {
    // The group must end even if this throws: the calls of others may be in flight.
    try {
      absl::StatusOr<std::shared_ptr<Permit>> own = Admit(context.caller, 0);
      if (!own.ok()) {
        call->GroupDone(i, own.status());
        continue;
      }
      StartModel(std::move(groups[i]), *std::move(own), WithoutPermit(context), call->response(i),
                 /*on_part=*/nullptr,
                 [call, i](absl::Status status) { call->GroupDone(i, std::move(status)); });
    } catch (...) {
      call->GroupDone(i, ErrorOfException());
    }
  }
}

void TextCalls::StartTwo(TextRequest request, std::shared_ptr<Permit> permit,
                         const CallContext& context, linnet::v1::TranslateResponse& response,
                         OnPart on_part, Done end) {
  struct Both {
    std::shared_ptr<const TextRequest> second;
    std::vector<TextItem> items;
    std::shared_ptr<Permit> permit;
    CallContext context;
    OnPart on_part;
    Done end;
  };
  auto first = std::make_shared<FirstCall>();
  auto both =
      std::make_shared<Both>(Both{request.second, request.items, permit, WithoutPermit(context),
                                  std::move(on_part), std::move(end)});
  auto fill_first = [first](const TextRequest& asked, const std::vector<PreparedText>& prepared,
                            int64_t /*work*/) -> std::optional<DecodingCall::Reply> {
    first->model_key = asked.model->key();
    first->texts = PivotTextsOf(asked, prepared);
    return DecodingCall::Reply{first->timings, first->bytes()};
  };
  auto fill_second = [&response, first, both](
                         const TextRequest& asked, const std::vector<PreparedText>& prepared,
                         int64_t /*work*/) -> std::optional<DecodingCall::Reply> {
    FillReply(asked, first->texts, prepared, response);
    AddDetectedLanguages(both->items, response);
    return DecodingCall::Reply{*response.mutable_timings(), ReplyBytes(response)};
  };
  // The call ends once, also if there is no memory for its second half.
  auto finish = [both](absl::Status status) {
    both->permit.reset();
    if (both->end != nullptr) std::exchange(both->end, nullptr)(std::move(status));
  };
  auto then = [this, both, first, finish,
               fill_second = std::move(fill_second)](absl::Status status) mutable {
    if (!status.ok()) return finish(std::move(status));
    try {
      first->began = absl::Now();
      // The segments of a pivot text have no limit but that of memory: the client cannot know them.
      constexpr int kNoMaxSegments = std::numeric_limits<int>::max();
      std::make_shared<DecodingCall>(
          pool_, metrics_, slow_call_, kNoMaxSegments,
          RequestOf(*both->second, first->texts, both->items), std::exchange(both->permit, nullptr),
          both->context, std::move(fill_second), std::move(both->on_part), finish, first)
          ->Start();
    } catch (const std::exception& error) {
      finish(absl::InternalError(
          absl::StrCat("the second model's call did not begin: ", error.what())));
    }
  };
  std::make_shared<DecodingCall>(pool_, metrics_, slow_call_, limits_.max_segments,
                                 std::move(request), std::move(permit), both->context,
                                 std::move(fill_first),
                                 /*on_part=*/nullptr, std::move(then))
      ->Start();
}

template void TextCalls::StartModel(TextRequest, std::shared_ptr<Permit>, const CallContext&,
                                    linnet::v1::TranslateResponse&, OnPart, Done);
template void TextCalls::StartModel(TextRequest, std::shared_ptr<Permit>, const CallContext&,
                                    linnet::v1::SummarizeResponse&, OnPart, Done);
template void TextCalls::StartModel(TextRequest, std::shared_ptr<Permit>, const CallContext&,
                                    linnet::v1::ScoreResponse&, OnPart, Done);
template void TextCalls::StartGroups(TextRequest, std::shared_ptr<Permit>, const CallContext&,
                                     linnet::v1::TranslateResponse&, OnPart, Done);
template void TextCalls::StartGroups(TextRequest, std::shared_ptr<Permit>, const CallContext&,
                                     linnet::v1::SummarizeResponse&, OnPart, Done);

}  // namespace linnet::server
