#include "server/text/markup_stage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "proto/status_macros.h"
#include "server/markup/marked_answer.h"
#include "server/text/attention_table.h"
#include "server/text/memory_cost.h"
#include "server/text/text_warnings.h"

namespace linnet::server {
namespace {

using linnet::v1::Segment;
using linnet::v1::TextPart;
using linnet::v1::TranslateResponse;
using linnet::v1::Translation;

// A fragment of the request.
struct Fragment {
  const std::string* source = nullptr;
  std::unique_ptr<const MarkedText> marked;
  std::vector<ByteRange> segments = {};  // of its plain text
};

// The fragments of a call, in the order of the items of its first stage.
struct Fragments {
  std::vector<Fragment> all;
  int64_t bytes() const {
    int64_t bytes = VectorBytes(all);
    for (const Fragment& fragment : all)
      bytes += fragment.marked->bytes() + VectorBytes(fragment.segments);
    return bytes;
  }
};

std::vector<ByteRange> ToByteRanges(const std::vector<WordRange>& words) {
  std::vector<ByteRange> ranges;
  for (const WordRange& word : words) ranges.push_back({word.begin, word.end});
  return ranges;
}

std::vector<ByteRange> SplitPieces(absl::string_view text) {
  return ToByteRanges(SplitUnits(text, WordUnit::kPiece));
}

// The pieces of a segment and how they are aligned. Where the model has no alignments, their places
// decide.
WordLinks LinkPieces(const AttentionTable& table, absl::string_view source,
                     absl::string_view translation) {
  constexpr float kMinWeight = 0.02f;
  WordLinks words;
  if (table.source.empty()) {
    words.source = SplitPieces(source);
    words.target = SplitPieces(translation);
    const auto sources = static_cast<int>(words.source.size());
    const auto targets = static_cast<int>(words.target.size());
    for (int i = 0; i < targets && sources > 0; ++i)
      words.links.push_back({static_cast<int>(static_cast<int64_t>(i) * sources / targets), i, 1});
    return words;
  }
  words.source = ToByteRanges(table.source);
  words.target = ToByteRanges(table.target);
  const size_t sources = table.source.size();
  for (size_t i = 0; i < table.weights.size(); ++i) {
    if (table.weights[i] < kMinWeight) continue;
    words.links.push_back(
        {static_cast<int>(i % sources), static_cast<int>(i / sources), table.weights[i]});
  }
  return words;
}

// The words of another translation of the segment, which take the links of the same words of the
// first one.
WordLinks LinkOtherTranslation(const WordLinks& best, absl::string_view translation,
                               absl::string_view other) {
  WordLinks words = {best.source, SplitPieces(other), {}};
  std::multimap<absl::string_view, int> known;
  for (int i = 0; i < std::ssize(best.target); ++i) {
    const auto [begin, end] = best.target[i];
    known.emplace(translation.substr(begin, end - begin), i);
  }
  std::map<int, int> others;  // by the word of the first translation
  for (int i = 0; i < std::ssize(words.target); ++i) {
    const auto [begin, end] = words.target[i];
    const auto found = known.find(other.substr(begin, end - begin));
    if (found == known.end()) continue;
    others.emplace(found->second, i);
    known.erase(found);
  }
  for (const WordLink& link : best.links) {
    if (const auto found = others.find(link.target); found != others.end())
      words.links.push_back({link.source, found->second, link.weight});
  }
  return words;
}

// Writes the answer of a fragment from that of its plain text.
class FragmentWriter {
 public:
  // With `has_findings` it keeps what InAnswer needs.
  FragmentWriter(const Fragment& fragment, bool has_findings)
      : fragment_(fragment),
        answer_(*fragment.source, *fragment.marked),
        has_findings_(has_findings) {}

  // Changes the segment from a place in the plain answer, where it is `translation`, to its place
  // in the answer, and returns what it adds to that. `align` aligns its pieces.
  std::string Add(absl::string_view translation, Segment& segment,
                  absl::FunctionRef<AttentionTable()> align) {
    const MarkedText& marked = *fragment_.marked;
    const absl::string_view source =
        absl::string_view(marked.text())
            .substr(segment.source_begin(), segment.source_end() - segment.source_begin());
    MarkedAnswer::Segment added;
    added.begin = segment.source_begin();
    added.end = segment.source_end();
    added.translation = translation;
    added.copied = segment.copied();
    added.next_begin = NextBegin();
    const bool has_codes = !added.copied && marked.HasCodes(added.begin, added.end);
    if (has_codes) added.words = LinkPieces(align(), source, translation);
    for (auto& hypothesis : *segment.mutable_hypotheses()) {
      MarkedAnswer::Segment other = added;
      other.translation = hypothesis.text();
      if (has_codes)
        other.words = LinkOtherTranslation(added.words, translation, hypothesis.text());
      hypothesis.set_text(answer_.Write(other));
    }
    const int plain = segment.target_begin();
    const MarkedAnswer::Part part = answer_.Add(added);
    Move(part, segment);
    if (has_findings_) written_.push_back({plain, begin_, part});
    begin_ += static_cast<int>(part.text().size());
    ++next_;
    return part.text();
  }
  // The place in the fragment, and that in the answer so far, of a part of their plain texts.
  model::TextRun InSource(model::TextRun plain) const {
    const ByteRange range = fragment_.marked->SourceRange(plain.begin, plain.end);
    return {range.begin, range.end};
  }
  model::TextRun InAnswer(model::TextRun plain) const {
    const auto after =
        std::upper_bound(written_.begin(), written_.end(), plain.begin,
                         [](int at, const Written& segment) { return at < segment.plain; });
    if (after == written_.begin()) return plain;
    const Written& segment = *std::prev(after);
    const ByteRange range =
        segment.part.PlaceInPart(plain.begin - segment.plain, plain.end - segment.plain);
    return {segment.begin + range.begin, segment.begin + range.end};
  }
  std::string Finish() { return answer_.Finish(); }

 private:
  // Where the next segment begins that is in no attribute.
  int NextBegin() const {
    const MarkedText& marked = *fragment_.marked;
    size_t next = next_ + 1;
    while (next < fragment_.segments.size() &&
           marked.AttributeAt(fragment_.segments[next].begin) != nullptr)
      ++next;
    return next < fragment_.segments.size() ? fragment_.segments[next].begin
                                            : static_cast<int>(marked.text().size());
  }

  // Moves the ranges of the segment.
  void Move(const MarkedAnswer::Part& part, Segment& segment) const {
    const int target_begin = segment.target_begin();
    const auto move_target = [&](auto& place) {
      const ByteRange range =
          part.PlaceInPart(place.target_begin() - target_begin, place.target_end() - target_begin);
      place.set_target_begin(begin_ + range.begin);
      place.set_target_end(begin_ + range.end);
    };
    const auto move_source = [&](auto& place) {
      const ByteRange range =
          fragment_.marked->SourceRange(place.source_begin(), place.source_end());
      place.set_source_begin(range.begin);
      place.set_source_end(range.end);
    };
    for (auto& word : *segment.mutable_words()) move_target(word);
    for (auto& link : *segment.mutable_word_alignments()) move_target(link), move_source(link);
    for (auto& term : *segment.mutable_glossary_terms()) {
      if (term.met()) move_target(term);
      move_source(term);
    }
    move_source(segment);
    segment.set_target_begin(begin_ + part.translation().begin);
    segment.set_target_end(begin_ + part.translation().end);
  }

  // A segment: where its translation begins in the plain answer, and its part of the answer.
  struct Written {
    int plain = 0;
    int begin = 0;
    MarkedAnswer::Part part;
  };

  const Fragment& fragment_;
  MarkedAnswer answer_;
  const bool has_findings_;
  std::vector<Written> written_;
  size_t next_ = 0;  // segment
  int begin_ = 0;    // bytes of the answer
};

// A stage between the call and `inner`.
class MarkupStage : public Stage {
 public:
  MarkupStage(std::unique_ptr<Stage> inner, std::shared_ptr<Fragments> fragments)
      : Stage(inner->request()), inner_(std::move(inner)), fragments_(std::move(fragments)) {}

  absl::Status Begin(Permit& permit) override {
    RETURN_IF_ERROR(inner_->Begin(permit));
    request_ = inner_->request();
    return absl::OkStatus();
  }
  absl::Status SegmentPrepared(const TextItem& item, PreparedSegment& segment) override {
    return inner_->SegmentPrepared(item, segment);
  }
  std::optional<TextPart> Stream(TextPart part, const std::vector<DecodedText>& texts) override {
    return inner_->Stream(std::move(part), texts);
  }
  bool Assemble(const std::vector<DecodedText>& texts, int64_t work) override {
    return inner_->Assemble(texts, work);
  }
  AttentionTable AlignPieces(const std::vector<DecodedText>& texts, int content,
                             int segment) const override {
    return inner_->AlignPieces(texts, content, segment);
  }
  int64_t bytes() const override { return inner_->bytes(); }

 protected:
  const std::unique_ptr<Stage> inner_;
  const std::shared_ptr<Fragments> fragments_;
};

// The stage that reads the fragments.
class ReadMarkupStage : public MarkupStage {
 public:
  using MarkupStage::MarkupStage;

  absl::Status Begin(Permit& permit) override {
    RETURN_IF_ERROR(MarkupStage::Begin(permit));
    // A fragment without text is its own translation.
    request_.may_be_empty = request_.second == nullptr;
    for (const TextItem& item : request_.items)
      held_ += MarkedText::MaxBytes(std::ssize(*item.text));
    return permit.Hold(held_);
  }
  bool Read(Permit& permit, int64_t& work) override {
    std::vector<Fragment>& fragments = fragments_->all;
    for (; work > 0 && fragments.size() < request_.items.size(); work -= kWorkOfItem) {
      TextItem& item = request_.items[fragments.size()];
      if (reader_ == nullptr)
        reader_ = std::make_unique<MarkedTextReader>(*item.text, *request_.markup);
      while (work > 0 && !reader_->done()) work -= reader_->Step(work);
      if (!reader_->done()) return false;
      fragments.push_back({item.text, std::make_unique<const MarkedText>(reader_->Take())});
      item.text = &fragments.back().marked->text();
      reader_ = nullptr;
    }
    if (fragments.size() < request_.items.size()) return false;
    permit.SetBytes(permit.bytes() - std::exchange(held_, 0) + fragments_->bytes());
    return true;
  }
  absl::Status SegmentPrepared(const TextItem& item, PreparedSegment& segment) override {
    RETURN_IF_ERROR(MarkupStage::SegmentPrepared(item, segment));
    Fragment& fragment = fragments_->all[&item - request_.items.data()];
    const ByteRange place = {segment.place.begin, segment.place.end};
    fragment.segments.push_back(place);
    segment.align |= !segment.copied && fragment.marked->HasCodes(place.begin, place.end);
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kWorkOfItem = 16;

  int64_t held_ = 0;                          // while the fragments are read
  std::unique_ptr<MarkedTextReader> reader_;  // of the next fragment
};

// The stage that fills the response.
class WriteMarkupStage final : public MarkupStage {
 public:
  WriteMarkupStage(std::unique_ptr<Stage> inner, std::shared_ptr<Fragments> fragments,
                   TranslateResponse& response)
      : MarkupStage(std::move(inner), std::move(fragments)), response_(response) {}

  // Keeps the parts of a segment until it is complete: its codes may move until then.
  std::optional<TextPart> Stream(TextPart part, const std::vector<DecodedText>& texts) override {
    std::optional<TextPart> plain = MarkupStage::Stream(std::move(part), texts);
    if (!plain.has_value()) return std::nullopt;
    const Fragment& fragment = fragments_->all[plain->content_index()];
    if (fragment.segments.empty()) {
      plain->set_text(*fragment.source);
      return plain;
    }
    text_ += plain->text();
    if (!plain->has_segment()) return std::nullopt;
    if (writer_ == nullptr)
      writer_ = std::make_unique<FragmentWriter>(fragment, /*has_findings=*/false);
    Segment& segment = *plain->mutable_segment();
    const int size = segment.target_end() - segment.target_begin();
    const std::string translation = text_.substr(segment.target_begin() - dropped_, size);
    dropped_ = segment.target_end();
    text_.clear();
    plain->set_text(writer_->Add(translation, segment, [&] {
      return AlignPieces(texts, plain->content_index(), plain->segment_index());
    }));
    if (plain->segment_index() + 1 == std::ssize(fragment.segments)) {
      *plain->mutable_text() += writer_->Finish();
      writer_ = nullptr;
      dropped_ = 0;
    }
    return plain;
  }

  bool Assemble(const std::vector<DecodedText>& texts, int64_t work) override {
    if (!assembled_ && !MarkupStage::Assemble(texts, work)) return false;
    assembled_ = true;
    for (; work > 0 && next_ < response_.translations_size(); ++next_) {
      if (!Write(texts, *response_.mutable_translations(next_), work)) return false;
    }
    return next_ == response_.translations_size();
  }

 private:
  // An answer, of which some segments are written.
  struct Answer {
    Answer(const Fragment& fragment, Findings missing, std::string translation)
        : findings(std::move(missing)),
          plain(std::move(translation)),
          writer(fragment, !findings.empty()) {}
    Findings findings;
    const std::string plain;
    FragmentWriter writer;
    std::string text = {};
    int segments = 0;
  };

  // Writes segments for about that much work. True if the translation is complete.
  bool Write(const std::vector<DecodedText>& texts, Translation& translation, int64_t& work) {
    constexpr int64_t kWorkOfSegment = 64;
    if (answer_ == nullptr) {
      answer_ = std::make_unique<Answer>(fragments_->all[next_], inner_->TakeFindings(next_),
                                         std::move(*translation.mutable_text()));
    }
    FragmentWriter& writer = answer_->writer;
    int& next = answer_->segments;
    for (; work > 0 && next < translation.segments_size(); ++next) {
      Segment& segment = *translation.mutable_segments(next);
      const absl::string_view part =
          absl::string_view(answer_->plain)
              .substr(segment.target_begin(), segment.target_end() - segment.target_begin());
      work -= kWorkOfSegment + 2 * std::ssize(part);
      answer_->text += writer.Add(part, segment, [&] { return AlignPieces(texts, next_, next); });
    }
    if (next < translation.segments_size()) return false;
    translation.set_text(answer_->text + writer.Finish());
    answer_->findings.Move([&](model::TextRun run) { return writer.InSource(run); },
                           [&](model::TextRun run) { return writer.InAnswer(run); });
    AddWarnings(answer_->findings, *translation.mutable_warnings());
    answer_ = nullptr;
    return true;
  }

  TranslateResponse& response_;
  bool assembled_ = false;
  int next_ = 0;                    // translation
  std::unique_ptr<Answer> answer_;  // of it
  // In a stream: the plain text of the current segment, from this byte of the content on.
  std::string text_;
  int dropped_ = 0;
  std::unique_ptr<FragmentWriter> writer_;
};

}  // namespace

Stages WithMarkup(Stages stages, TranslateResponse& response) {
  auto fragments = std::make_shared<Fragments>();
  stages.back() = std::make_unique<WriteMarkupStage>(std::move(stages.back()), fragments, response);
  stages.front() = std::make_unique<ReadMarkupStage>(std::move(stages.front()), fragments);
  return stages;
}

}  // namespace linnet::server
