#include "server/text/language_groups.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "server/base/exceptions.h"

namespace linnet::server {
namespace {

using linnet::v1::SummarizeResponse;
using linnet::v1::Summary;
using linnet::v1::TranslateResponse;
using linnet::v1::Translation;

google::protobuf::RepeatedPtrField<Translation>& MutableTexts(TranslateResponse& response) {
  return *response.mutable_translations();
}
google::protobuf::RepeatedPtrField<Summary>& MutableTexts(SummarizeResponse& response) {
  return *response.mutable_summaries();
}

void Add(const google::protobuf::Duration& from, google::protobuf::Duration& to) {
  constexpr int kNanosPerSecond = 1'000'000'000;
  const int nanos = from.nanos() + to.nanos();
  to.set_seconds(from.seconds() + to.seconds() + nanos / kNanosPerSecond);
  to.set_nanos(nanos % kNanosPerSecond);
}

// The total is that of the group that took longest; the others are times of the models.
void Add(const linnet::v1::Timings& from, linnet::v1::Timings& to) {
  Add(from.tokenize(), *to.mutable_tokenize());
  Add(from.queue(), *to.mutable_queue());
  Add(from.decode(), *to.mutable_decode());
  Add(from.encode(), *to.mutable_encode());
  Add(from.text_queue(), *to.mutable_text_queue());
  const auto later = [](const google::protobuf::Duration& a, const google::protobuf::Duration& b) {
    return std::pair(a.seconds(), a.nanos()) > std::pair(b.seconds(), b.nanos());
  };
  if (later(from.total(), to.total())) *to.mutable_total() = from.total();
}

void AddPivot(const TranslateResponse& from, Translation& to) {
  if (from.has_pivot()) *to.mutable_pivot() = from.pivot();
}
void AddPivot(const SummarizeResponse& /*from*/, Summary& /*to*/) {}

void MovePivot(TranslateResponse& from, TranslateResponse& to) {
  if (from.has_pivot()) to.mutable_pivot()->Swap(from.mutable_pivot());
}
void MovePivot(SummarizeResponse& /*from*/, SummarizeResponse& /*to*/) {}

// Fills the answer for a text that is in the target language already.
template <typename Text>
void FillUnchanged(const TextItem& item, Text& text) {
  text.set_text(*item.text);
  text.set_finish_reason(linnet::v1::FINISH_REASON_STOP);
  linnet::v1::Warning& warning = *text.add_warnings();
  warning.set_reason("ALREADY_IN_TARGET_LANGUAGE");
  if (!item.detected.has_value()) {
    warning.set_message(
        "text is returned unchanged, as the others, which are in the target "
        "language already");
    return;
  }
  const std::string& code = item.detected->language_code();
  *text.mutable_detected_language() = *item.detected;
  warning.set_message(absl::StrCat("text is in \"", code,
                                   "\" already and is returned unchanged; set the source language "
                                   "to translate it all the same"));
  (*warning.mutable_metadata())["detectedLanguage"] = code;
  (*warning.mutable_metadata())["confidence"] = absl::StrCat(item.detected->confidence());
}

template <typename Texts>
void AddToTexts(const std::vector<TextItem>& items, Texts& texts) {
  for (int i = 0; i < texts.size() && i < std::ssize(items); ++i) {
    if (items[i].detected.has_value()) *texts[i].mutable_detected_language() = *items[i].detected;
  }
}

}  // namespace

void AddDetectedLanguages(const std::vector<TextItem>& items, TranslateResponse& response) {
  AddToTexts(items, *response.mutable_translations());
}
void AddDetectedLanguages(const std::vector<TextItem>& items, SummarizeResponse& response) {
  AddToTexts(items, *response.mutable_summaries());
}
void AddDetectedLanguages(const std::vector<TextItem>& /*items*/,
                          linnet::v1::ScoreResponse& /*response*/) {}

template <typename Response>
LanguageGroups<Response>::LanguageGroups(const std::vector<TextRequest>& groups,
                                         std::vector<TextItem> unchanged, Response& response,
                                         std::shared_ptr<Permit> permit,
                                         std::shared_ptr<Cancellation> cancelled, OnPart on_part,
                                         Done done)
    : unchanged_(std::move(unchanged)),
      response_(response),
      permit_(std::move(permit)),
      cancelled_(std::move(cancelled)),
      on_part_(std::move(on_part)),
      done_(std::move(done)),
      open_(groups.size()) {
  for (const TextRequest& group : groups) {
    std::vector<int>& contents = groups_.emplace_back().contents;
    for (const TextItem& item : group.items) contents.push_back(item.index);
  }
}

template <typename Response>
void LanguageGroups<Response>::GroupDone(size_t group, absl::Status status) {
  bool failed = false;
  {
    MutexLock lock(mu_);
    if (std::exchange(groups_[group].ended, true)) return;
    if (!status.ok() && status_.ok()) {
      status_ = std::move(status);
      failed = true;
    }
    if (--open_ > 0 && !failed) return;
    if (open_ == 0) {
      status = status_;
      failed = false;
    }
  }
  if (failed) return cancelled_->Cancel();  // the others are no longer needed
  Finish(std::move(status));
}

template <typename Response>
void LanguageGroups<Response>::Finish(absl::Status status) {
  if (status.ok()) {
    try {
      Merge();
      permit_->SetBytes(permit_->bytes() + 2 * static_cast<int64_t>(response_.SpaceUsedLong()));
      if (on_part_ != nullptr) SendParts();
    } catch (...) {
      status = ErrorOfException();
    }
  }
  permit_.reset();
  std::exchange(done_, nullptr)(std::move(status));
}

template <typename Response>
void LanguageGroups<Response>::Merge() {
  size_t count = unchanged_.size();
  for (const Group& group : groups_) count += group.contents.size();
  auto& texts = MutableTexts(response_);
  while (static_cast<size_t>(texts.size()) < count) texts.Add();
  for (const TextItem& item : unchanged_) FillUnchanged(item, texts[item.index]);
  for (Group& group : groups_) {
    auto& answers = MutableTexts(group.response);
    for (int i = 0; i < answers.size(); ++i) {
      auto& text = texts[group.contents[i]];
      text.Swap(&answers[i]);
      if (groups_.size() == 1) continue;
      text.set_model(group.response.model());
      text.set_model_version(group.response.model_version());
      AddPivot(group.response, text);
    }
    Add(group.response.timings(), *response_.mutable_timings());
    if (groups_.size() > 1) continue;
    response_.set_model(group.response.model());
    response_.set_model_version(group.response.model_version());
    MovePivot(group.response, response_);
  }
}

template <typename Response>
void LanguageGroups<Response>::SendParts() {
  const auto& texts = MutableTexts(response_);
  for (int content = 0; content < texts.size(); ++content) {
    const std::string& text = texts[content].text();
    size_t sent = 0;
    const int segments = texts[content].segments_size();
    // The last part takes the white space at the end of the text, and is all of it without
    // segments.
    for (int segment = 0; segment < std::max(segments, 1); ++segment) {
      linnet::v1::TextPart part;
      part.set_content_index(content);
      part.set_segment_index(segment);
      size_t end = text.size();
      if (segment < segments) *part.mutable_segment() = texts[content].segments(segment);
      if (segment + 1 < segments) end = texts[content].segments(segment).target_end();
      part.set_text(text.substr(sent, end - sent));
      sent = end;
      on_part_(std::move(part));
    }
  }
}

template class LanguageGroups<TranslateResponse>;
template class LanguageGroups<SummarizeResponse>;

}  // namespace linnet::server
