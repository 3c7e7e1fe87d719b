#include "client/cli/text/text_parts.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "client/cli/text/error_attribution.h"
#include "client/command/text/white_space.h"

namespace linnet::client {
namespace {

// Shifts the offsets of `segment` from a part to the whole text.
void Shift(int source, int target, v1::Segment* segment) {
  const auto move_target = [target](auto& place) {
    place.set_target_begin(place.target_begin() + target);
    place.set_target_end(place.target_end() + target);
  };
  const auto move = [&](auto& place) {
    place.set_source_begin(place.source_begin() + source);
    place.set_source_end(place.source_end() + source);
    move_target(place);
  };
  move(*segment);
  for (v1::Word& word : *segment->mutable_words()) move_target(word);
  for (v1::WordAlignment& word_alignment : *segment->mutable_word_alignments())
    move(word_alignment);
  for (v1::GlossaryTerm& term : *segment->mutable_glossary_terms()) {
    if (term.met()) move_target(term);
    term.set_source_begin(term.source_begin() + source);
    term.set_source_end(term.source_end() + source);
  }
}

void Add(const google::protobuf::Duration& more, google::protobuf::Duration* sum) {
  const int64_t nanos = int64_t{sum->nanos()} + more.nanos();
  sum->set_seconds(sum->seconds() + more.seconds() + nanos / 1'000'000'000);
  sum->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
}

void AddTimings(const v1::Timings& more, v1::Timings* sum) {
  Add(more.total(), sum->mutable_total());
  Add(more.tokenize(), sum->mutable_tokenize());
  Add(more.queue(), sum->mutable_queue());
  Add(more.decode(), sum->mutable_decode());
  Add(more.encode(), sum->mutable_encode());
  Add(more.text_queue(), sum->mutable_text_queue());
}

// Joins the answers to the parts of a text.
class Joined {
 public:
  void AddWhiteSpace(absl::string_view part) {
    text_.append(part.data(), part.size());
    source_bytes_ += static_cast<int>(part.size());
  }

  void Add(absl::string_view part, v1::TranslateResponse response) {
    v1::Translation& answer = *response.mutable_translations(0);
    for (v1::Segment& segment : *answer.mutable_segments()) {
      Shift(source_bytes_, static_cast<int>(text_.size()), &segment);
    }
    text_ += answer.text();
    source_bytes_ += static_cast<int>(part.size());
    if (whole_.translations().empty()) {
      whole_ = std::move(response);
      return;
    }
    v1::Translation& whole = *whole_.mutable_translations(0);
    whole.mutable_segments()->MergeFrom(answer.segments());
    if (answer.finish_reason() == v1::FINISH_REASON_LENGTH) {
      whole.set_finish_reason(v1::FINISH_REASON_LENGTH);
    }
    for (v1::Warning& warning : *answer.mutable_warnings()) {
      const bool known =
          std::any_of(whole.warnings().begin(), whole.warnings().end(),
                      [&](const v1::Warning& said) { return said.message() == warning.message(); });
      if (!known) *whole.add_warnings() = std::move(warning);
    }
    v1::TokenUsage& usage = *whole.mutable_usage();
    usage.set_source_tokens(usage.source_tokens() + answer.usage().source_tokens());
    usage.set_target_tokens(usage.target_tokens() + answer.usage().target_tokens());
    AddTimings(response.timings(), whole_.mutable_timings());
  }

  v1::TranslateResponse Take() {
    whole_.mutable_translations(0)->set_text(std::move(text_));
    return std::move(whole_);
  }

 private:
  v1::TranslateResponse whole_;
  std::string text_;
  int source_bytes_ = 0;
};

// The newline that ends the last blank line of a text, or npos.
size_t LastBlankLine(absl::string_view text) {
  size_t end = text.rfind('\n');
  while (end != absl::string_view::npos && end > 0) {
    const size_t before = text.rfind('\n', end - 1);
    if (before == absl::string_view::npos) break;
    if (IsWhiteSpace(text.substr(before, end - before))) return end;
    end = before;
  }
  return absl::string_view::npos;
}

}  // namespace

bool NeedsSmallerParts(const absl::Status& status) {
  if (status.ok()) return false;
  const std::string reason = DetailsOf(status).reason;
  return reason == "DEADLINE_TOO_CLOSE" || reason == "DEADLINE_TOO_SHORT" ||
         AttributeToTexts(status, "contents", 2).fault == Fault::kTooMuchTogether;
}

void UseDetectedLanguage(const v1::TranslateResponse& response, v1::TranslateRequest* request) {
  // A part that is in the target language already says nothing about the others.
  for (const v1::Translation& translation : response.translations()) {
    for (const v1::Warning& warning : translation.warnings()) {
      if (warning.reason() == "ALREADY_IN_TARGET_LANGUAGE") return;
    }
  }
  if (request->source_language_code().empty() && response.has_detected_language())
    request->set_source_language_code(response.detected_language().language_code());
}

bool JoinsLines(const v1::TranslateRequest& request) {
  return request.line_breaks() == v1::LINE_BREAKS_JOIN_PARAGRAPHS;
}

std::vector<absl::string_view> SplitAtLines(absl::string_view text, size_t max_bytes,
                                            bool at_paragraphs) {
  std::vector<absl::string_view> parts;
  while (!text.empty()) {
    size_t end = text.size();
    if (end > max_bytes) {
      end = at_paragraphs ? LastBlankLine(text.substr(0, max_bytes)) : absl::string_view::npos;
      if (end == absl::string_view::npos) end = text.rfind('\n', max_bytes - 1);
      if (end == absl::string_view::npos) end = text.find('\n', max_bytes);
      end = end == absl::string_view::npos ? text.size() : end + 1;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

absl::StatusOr<v1::TranslateResponse> TranslateInParts(Client& client,
                                                       const v1::TranslateRequest& request,
                                                       const CallOptions& options) {
  const bool has_markup = !request.mime_type().empty() && request.mime_type() != "text/plain";
  if (request.contents_size() != 1 || has_markup || !request.target_prefix().empty())
    return client.Translate(request, options);
  const std::string& text = request.contents(0);
  if (text.size() <= kBytesPerPart) {
    auto response = client.Translate(request, options);
    if (!NeedsSmallerParts(response.status())) return response;
  }
  v1::TranslateRequest settings = request;
  Joined joined;
  const std::vector<absl::string_view> first =
      SplitAtLines(text, kBytesPerPart, JoinsLines(request));
  std::deque<absl::string_view> parts(first.begin(), first.end());
  while (!parts.empty()) {
    const absl::string_view part = parts.front();
    parts.pop_front();
    if (IsWhiteSpace(part)) {
      joined.AddWhiteSpace(part);
      continue;
    }
    settings.set_contents(0, std::string(part));
    absl::StatusOr<v1::TranslateResponse> response = client.Translate(settings, options);
    if (NeedsSmallerParts(response.status())) {
      const std::vector<absl::string_view> halves =
          SplitAtLines(part, (part.size() + 1) / 2, JoinsLines(request));
      if (halves.size() == 1) return response;
      parts.insert(parts.begin(), halves.begin(), halves.end());
      continue;
    }
    if (!response.ok()) return response;
    UseDetectedLanguage(*response, &settings);
    joined.Add(part, *std::move(response));
  }
  return joined.Take();
}

}  // namespace linnet::client
