#include "server/text/markup_stage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/status_macros.h"
#include "server/markup/marked_answer.h"
#include "server/text/memory_cost.h"

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
  bool alignments = false;  // the client asked for them
  std::vector<Fragment> all;
  int64_t bytes() const {
    int64_t bytes = VectorBytes(all);
    for (const Fragment& fragment : all)
      bytes += fragment.marked->bytes() + VectorBytes(fragment.segments);
    return bytes;
  }
};

// Numbers the ranges of words in their order.
class WordNumbers {
 public:
  void Add(int begin, int end) { numbers_.emplace(std::make_pair(begin, end), 0); }
  std::vector<ByteRange> Ranges() {
    std::vector<ByteRange> ranges;
    for (auto& [range, number] : numbers_) {
      number = static_cast<int>(ranges.size());
      ranges.push_back({range.first, range.second});
    }
    return ranges;
  }
  int operator()(int begin, int end) const { return numbers_.at({begin, end}); }

 private:
  std::map<std::pair<int, int>, int> numbers_;
};

// The words of a text between its blanks.
std::vector<ByteRange> BlankWords(absl::string_view text) {
  std::vector<ByteRange> words;
  for (int at = 0, size = static_cast<int>(text.size()); at < size;) {
    int end = at;
    while (end < size && !IsMarkupSpace(text[end])) ++end;
    if (end > at) words.push_back({at, end});
    at = end + 1;
  }
  return words;
}

// The words of a segment and their alignments. Where the model has none, the words are aligned by
// their places.
WordLinks LinksOf(const Segment& segment, absl::string_view source, absl::string_view translation) {
  WordLinks words;
  if (segment.word_alignments().empty()) {
    words.source = BlankWords(source);
    words.target = BlankWords(translation);
    const auto sources = static_cast<int>(words.source.size());
    const auto targets = static_cast<int>(words.target.size());
    for (int i = 0; i < targets && sources > 0; ++i)
      words.links.push_back({static_cast<int>(static_cast<int64_t>(i) * sources / targets), i, 1});
    return words;
  }
  WordNumbers sources, targets;
  const int source_begin = segment.source_begin();
  const int target_begin = segment.target_begin();
  for (const auto& link : segment.word_alignments()) {
    sources.Add(link.source_begin() - source_begin, link.source_end() - source_begin);
    targets.Add(link.target_begin() - target_begin, link.target_end() - target_begin);
  }
  words.source = sources.Ranges();
  words.target = targets.Ranges();
  for (const auto& link : segment.word_alignments()) {
    words.links.push_back(
        {sources(link.source_begin() - source_begin, link.source_end() - source_begin),
         targets(link.target_begin() - target_begin, link.target_end() - target_begin),
         link.weight()});
  }
  return words;
}

// The words of another translation of the segment, which take the links of the same words of the
// first one.
WordLinks LinksOfOther(const WordLinks& best, absl::string_view translation,
                       absl::string_view other) {
  WordLinks words = {best.source, BlankWords(other), {}};
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
  FragmentWriter(const Fragment& fragment, bool alignments)
      : fragment_(fragment), alignments_(alignments), answer_(*fragment.source, *fragment.marked) {}

  // Changes the segment from a place in the plain answer, where it is `translation`, to its place
  // in the answer, and returns what it adds to that.
  std::string Add(absl::string_view translation, Segment& segment) {
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
    const bool has_codes = marked.HasCodes(added.begin, added.end);
    if (has_codes) added.words = LinksOf(segment, source, translation);
    for (auto& hypothesis : *segment.mutable_hypotheses()) {
      MarkedAnswer::Segment other = added;
      other.translation = hypothesis.text();
      if (has_codes) other.words = LinksOfOther(added.words, translation, hypothesis.text());
      hypothesis.set_text(answer_.Write(other));
    }
    const MarkedAnswer::Part part = answer_.Add(added);
    Move(part, segment);
    begin_ += static_cast<int>(part.text().size());
    ++next_;
    return part.text();
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
          part.RangeOf(place.target_begin() - target_begin, place.target_end() - target_begin);
      place.set_target_begin(begin_ + range.begin);
      place.set_target_end(begin_ + range.end);
    };
    const auto move_source = [&](auto& place) {
      const ByteRange range = fragment_.marked->SourceOf(place.source_begin(), place.source_end());
      place.set_source_begin(range.begin);
      place.set_source_end(range.end);
    };
    if (!alignments_) segment.clear_word_alignments();
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

  const Fragment& fragment_;
  const bool alignments_;
  MarkedAnswer answer_;
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
    int64_t bytes = 0;
    for (const TextItem& item : request_.items)
      bytes += MarkedText::MaxBytes(std::ssize(*item.text));
    RETURN_IF_ERROR(permit.Hold(bytes));
    for (TextItem& item : request_.items) {
      fragments_->all.push_back(
          {item.text, std::make_unique<const MarkedText>(*item.text, *request_.markup)});
      item.text = &fragments_->all.back().marked->text();
    }
    // A fragment without text is its own translation.
    request_.may_be_empty = request_.second == nullptr;
    permit.SetBytes(permit.bytes() - bytes + fragments_->bytes());
    return absl::OkStatus();
  }
  absl::Status SegmentPrepared(const TextItem& item, PreparedSegment& segment) override {
    RETURN_IF_ERROR(MarkupStage::SegmentPrepared(item, segment));
    Fragment& fragment = fragments_->all[&item - request_.items.data()];
    const ByteRange place = {segment.place.begin, segment.place.end};
    fragment.segments.push_back(place);
    segment.align = fragments_->alignments || request_.second != nullptr ||
                    (!segment.copied && fragment.marked->HasCodes(place.begin, place.end));
    return absl::OkStatus();
  }
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
      writer_ = std::make_unique<FragmentWriter>(fragment, fragments_->alignments);
    Segment& segment = *plain->mutable_segment();
    const int size = segment.target_end() - segment.target_begin();
    const std::string translation = text_.substr(segment.target_begin() - dropped_, size);
    dropped_ = segment.target_end();
    text_.clear();
    plain->set_text(writer_->Add(translation, segment));
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
      Translation& translation = *response_.mutable_translations(next_);
      work -= std::ssize(translation.text());
      Write(fragments_->all[next_], translation);
    }
    return next_ == response_.translations_size();
  }

 private:
  void Write(const Fragment& fragment, Translation& translation) const {
    FragmentWriter writer(fragment, fragments_->alignments);
    const std::string plain = std::move(*translation.mutable_text());
    std::string text;
    for (Segment& segment : *translation.mutable_segments()) {
      const absl::string_view part = absl::string_view(plain).substr(
          segment.target_begin(), segment.target_end() - segment.target_begin());
      text += writer.Add(part, segment);
    }
    translation.set_text(text + writer.Finish());
  }

  TranslateResponse& response_;
  bool assembled_ = false;
  int next_ = 0;  // translation
  // Of the stream: the plain text of the current segment, from this byte of the content on.
  std::string text_;
  int dropped_ = 0;
  std::unique_ptr<FragmentWriter> writer_;
};

}  // namespace

Stages WithMarkup(Stages stages, bool alignments, TranslateResponse& response) {
  auto fragments = std::make_shared<Fragments>();
  fragments->alignments = alignments;
  stages.back() = std::make_unique<WriteMarkupStage>(std::move(stages.back()), fragments, response);
  stages.front() = std::make_unique<ReadMarkupStage>(std::move(stages.front()), fragments);
  return stages;
}

}  // namespace linnet::server
