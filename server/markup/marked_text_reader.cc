// How MarkedText reads a fragment.
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/markup/character_references.h"
#include "server/markup/marked_text.h"
#include "server/markup/markup_tokenizer.h"

namespace linnet::server {
namespace {

using TokenKind = MarkupToken::Kind;

// Work (MarkedTextReader::Step) on a token, beside its bytes and attributes.
constexpr int64_t kWorkOfToken = 2;
constexpr int64_t kBytesPerWork = 16;

bool IsLetterOrDigit(char c) { return absl::ascii_isalnum(c) || static_cast<uint8_t>(c) >= 0x80; }

}  // namespace

// Reads the tokens of a fragment into a MarkedText.
class MarkedText::Reader {
 public:
  // Copied text with the numbers in `without`, from 0 on, gets no stand-in.
  Reader(absl::string_view fragment, const MarkupOptions& options, std::vector<bool> without,
         MarkedText& out)
      : fragment_(fragment),
        options_(options),
        without_(std::move(without)),
        out_(out),
        tokenizer_(fragment, options.syntax) {}

  // By the number of a copied text: whether a stand-in for it would do harm. Empty if none does,
  // and if such texts have got none.
  std::vector<bool> Harmful() {
    if (!without_.empty()) return {};
    if (has_private_) harmful_.assign(copies_, true);
    return std::move(harmful_);
  }

  // Reads for about that much work, which it counts down. True at the end of the fragment.
  bool Read(int64_t& work) {
    while (work > 0) {
      const int begin = rest_.begin;
      if (begin < rest_.end) {
        const int64_t end = std::min<int64_t>(rest_.end, begin + work * kBytesPerWork);
        rest_.begin = AddText(begin, static_cast<int>(end), rest_.end);
        work -= 1 + (rest_.begin - begin) / kBytesPerWork;
        continue;
      }
      if (!tokenizer_.Next(token_)) {
        End();
        return true;
      }
      work -= kWorkOfToken + std::ssize(token_.attributes);
      if (copied_.has_value()) {
        ReadCopied(token_);
      } else {
        ReadToken(token_);
      }
      if (rest_.begin == rest_.end) work -= (token_.end - token_.begin) / kBytesPerWork;
    }
    return false;
  }

 private:
  // An element without its end so far.
  struct Open {
    std::string name;
    int code = -1;  // of an inline element
  };
  // An element that is copied, and the elements of its name within it.
  struct Copied {
    std::string name;
    ElementKind kind;
    int begin = 0;
    int depth = 1;
  };

  std::string ElementName(const MarkupToken& tag) const {
    std::string name(tag.name);
    if (options_.syntax == MarkupSyntax::kHtml) absl::AsciiStrToLower(&name);
    return name;
  }

  void ReadToken(const MarkupToken& token) {
    switch (token.kind) {
      case TokenKind::kText:
        rest_ = {token.begin, token.end};
        return;
      case TokenKind::kStartTag:
        return ReadStart(token);
      case TokenKind::kEndTag:
        return ReadEnd(token);
      case TokenKind::kCopied:
        if (!IsCutOff(token)) return AddCopied({token.begin, token.end});
        return AddCode(Code::Kind::kEmpty, {token.begin, token.end}, /*visible=*/true);
      case TokenKind::kOther:
        return AddCode(Code::Kind::kEmpty, {token.begin, token.end});
    }
  }

  void End() {
    if (copied_.has_value()) EndCopied(static_cast<int>(fragment_.size()), /*whole=*/false);
    EndBlock();
    for (const Open& open : open_) Unpair(open);
  }

  // True for a CDATA section or a template tag without its end.
  bool IsCutOff(const MarkupToken& token) const {
    const absl::string_view text = fragment_.substr(token.begin, token.end - token.begin);
    return !absl::EndsWith(text, "]]>") && !absl::EndsWith(text, "%>") &&
           !absl::EndsWith(text, "?>");
  }

  // True for <sub> and <sup> with digits and marks alone, as in H2O and in marks of notes.
  bool IsIndex(const MarkupToken& tag) const {
    if (options_.syntax == MarkupSyntax::kXml ||
        (!absl::EqualsIgnoreCase(tag.name, "sub") && !absl::EqualsIgnoreCase(tag.name, "sup")))
      return false;
    size_t at = tag.end;
    while (at < fragment_.size() && fragment_[at] != '<' && !absl::ascii_isalpha(fragment_[at]) &&
           static_cast<uint8_t>(fragment_[at]) < 0x80)
      ++at;
    return absl::StartsWithIgnoreCase(fragment_.substr(at), absl::StrCat("</", tag.name));
  }

  // True if the element that `tag` begins comes directly behind the end of one that says something
  // else: links side by side, and fields of XML.
  bool IsApart(const MarkupToken& tag) const {
    if (ended_.empty() || block_.empty() || !IsLetterOrDigit(block_.back())) return false;
    const bool same = SameName(tag.name, ended_, options_.syntax);
    return options_.syntax == MarkupSyntax::kXml ? !same
                                                 : same && absl::EqualsIgnoreCase(ended_, "a");
  }

  void ReadStart(const MarkupToken& tag) {
    ElementKind kind = ClassifyElement(tag, options_);
    if (IsIndex(tag)) kind.copied = kind.visible = true;
    if (kind.splits || (!kind.empty && !kind.copied && IsApart(tag))) EndBlock();
    joint_ = !kind.empty && !kind.copied && !ended_.empty();
    ended_ = {};
    // A copied element has no text, and neither have its attributes.
    if (!kind.copied) {
      for (const MarkupAttribute& attribute : tag.attributes) AddAttribute(attribute);
    }
    const ByteRange bytes = {tag.begin, tag.end};
    if (kind.empty) {
      if (kind.splits) return;
      AddCode(Code::Kind::kEmpty, bytes, kind.visible);
      if (kind.joins) apart_ = false;
      return;
    }
    if (kind.copied) {
      copied_ = {.name = ElementName(tag), .kind = kind, .begin = tag.begin};
      return;
    }
    Open open = {.name = ElementName(tag)};
    if (!kind.splits) {
      open.code = static_cast<int>(out_.codes_.size());
      AddCode(Code::Kind::kOpen, bytes);
      Code& code = out_.codes_.back();
      const bool html = options_.syntax == MarkupSyntax::kHtml;
      code.link = html && open.name == "a";
      // "<t>un</t><t>able</t>": a format may have no element within one of its own name.
      code.name = html ? 0 : 1 + static_cast<uint32_t>(std::hash<std::string>()(open.name) >> 34);
    } else {
      blocks_.push_back(open_.size());
    }
    by_name_[open.name].push_back(open_.size());
    open_.push_back(std::move(open));
  }

  void ReadEnd(const MarkupToken& tag) {
    joint_ = false;
    ended_ = tag.name;
    const std::string name = ElementName(tag);
    const auto found = by_name_.find(name);
    const bool known = found != by_name_.end() && !found->second.empty();
    const bool block =
        known ? open_[found->second.back()].code < 0 : ClassifyElement(tag, options_).splits;
    if (block) EndBlock();
    // The end of an inline element does not end the blocks within it.
    if (!known || (!block && !blocks_.empty() && blocks_.back() > found->second.back())) {
      if (!block) AddCode(Code::Kind::kEmpty, {tag.begin, tag.end}, false, /*closes=*/true);
      return;
    }
    const size_t opened = found->second.back();
    while (open_.size() > opened + 1) {
      Unpair(open_.back());
      Pop();
    }
    if (!block) {
      const int partner = open_.back().code;
      const auto code = static_cast<int>(out_.codes_.size());
      AddCode(Code::Kind::kClose, {tag.begin, tag.end});
      out_.codes_[code].partner = partner;
      out_.codes_[code].link = out_.codes_[partner].link;
      out_.codes_[code].name = out_.codes_[partner].name;
      out_.codes_[partner].partner = code;
    }
    Pop();
  }

  void Pop() {
    by_name_[open_.back().name].pop_back();
    if (!blocks_.empty() && blocks_.back() + 1 == open_.size()) blocks_.pop_back();
    open_.pop_back();
  }

  void Unpair(const Open& open) const {
    if (open.code >= 0) out_.codes_[open.code].kind = Code::Kind::kEmpty;
  }

  void ReadCopied(const MarkupToken& token) {
    const bool start = token.kind == TokenKind::kStartTag;
    if (!start && token.kind != TokenKind::kEndTag) return;
    if (!SameName(token.name, copied_->name, options_.syntax)) return;
    if (start) {
      if (!ClassifyElement(token, options_).empty) ++copied_->depth;
    } else if (--copied_->depth == 0) {
      EndCopied(token.end, /*whole=*/true);
    }
  }

  // `whole` is false for an element that the end of the fragment cuts off: it must stay there.
  void EndCopied(int end, bool whole) {
    const Copied copied = *std::exchange(copied_, std::nullopt);
    if (copied.kind.splits) {
      EndBlock();
    } else if (copied.kind.visible && whole) {
      AddCopied({copied.begin, end});
    } else {
      AddCode(Code::Kind::kEmpty, {copied.begin, end}, copied.kind.visible);
    }
  }

  // Adds what is copied and may have a stand-in.
  void AddCopied(ByteRange source) {
    AddCode(Code::Kind::kEmpty, source, /*visible=*/true);
    const auto number = static_cast<size_t>(copies_++);
    sentence_.push_back(number);
    if (number > kLastStandIn - kFirstStandIn) return;
    if (number < without_.size() && without_[number]) return;
    Code& code = out_.codes_.back();
    code.stand_in = kFirstStandIn + static_cast<char32_t>(number);
    ++code.at;
    decoded_.clear();
    AppendUtf8(code.stand_in, decoded_);
    AddTo(block_, block_pieces_, decoded_, source, /*same=*/false);
  }

  void EndSentence() {
    if (sentence_.size() > kMaxStandIns) {
      harmful_.resize(copies_);
      for (const size_t number : sentence_) harmful_[number] = true;
    }
    sentence_.clear();
  }

  int PlainSize() const { return static_cast<int>(out_.text_.size()); }

  void AddCode(Code::Kind kind, ByteRange source, bool visible = false, bool closes = false) {
    Code& code = out_.codes_.emplace_back();
    code.source = source;
    code.kind = kind;
    code.visible = visible;
    code.closes = closes;
    code.line = line_;
    // Until the block ends, counted from its begin.
    code.at = static_cast<int>(block_.size());
    code.space_before = space_;
    if (!visible) return;
    joint_ = false;
    ended_ = {};
    last_visible_ = static_cast<int>(out_.codes_.size()) - 1;
    apart_ = true;
    space_ = false;
  }

  // Adds bytes of a block's line.
  void Add(absl::string_view bytes, ByteRange source, bool same) {
    if (StandInAt(same ? fragment_.substr(source.begin) : bytes, 0) != 0) has_private_ = true;
    // "Price</b><b>Amount": two texts, which their style sets apart.
    if (joint_ && !block_.empty() && absl::ascii_isupper(bytes.front()) &&
        (absl::ascii_islower(block_.back()) || absl::ascii_isdigit(block_.back())))
      EndBlock();
    joint_ = false;
    ended_ = {};
    if (apart_ && !block_.empty() && AreWords(block_.back(), bytes.front())) SeparateWords();
    AddTo(block_, block_pieces_, bytes, source, same);
    last_visible_ = -1;
    apart_ = false;
    space_ = false;
  }

  // Adds a blank in place of the last codes, unless a stand-in is there.
  void SeparateWords() {
    const Code& last = out_.codes_[last_visible_];
    if (last.stand_in != 0) return;
    if (absl::StrContains(".!?", block_.back())) EndSentence();
    for (int i = last_visible_; i >= 0 && out_.codes_[i].line == line_; --i) {
      if (out_.codes_[i].at != last.at || out_.codes_[i].stand_in != 0) break;
      out_.codes_[i].between_words = out_.codes_[i].visible;
    }
    AddTo(block_, block_pieces_, " ", last.source, /*same=*/false);
  }

  static void AddTo(std::string& text, std::vector<Piece>& pieces, absl::string_view bytes,
                    ByteRange source, bool same) {
    const bool joins =
        same && !pieces.empty() && pieces.back().same && pieces.back().source.end == source.begin;
    if (joins) {
      pieces.back().source.end = source.end;
    } else {
      pieces.push_back({static_cast<int>(text.size()), source, same});
    }
    text.append(bytes.data(), bytes.size());
  }

  // Adds bytes [at, end) of a text, with the reference that begins there, and returns where that
  // ends. The text ends at `text_end`.
  int AddText(int at, int end, int text_end) {
    const absl::string_view text = fragment_.substr(0, text_end);
    while (at < end) {
      auto [bytes, source, same] = ReadUnit(text, at, /*in_attribute=*/false);
      // An entity of a DTD stands for a text that is not here.
      const int entity = same && text[at] == '&' && options_.syntax == MarkupSyntax::kXml
                             ? EntityLength(text, at)
                             : 0;
      if (entity > 0) {
        source.end = at + entity;
        AddCopied(source);
      } else if (bytes.size() == 1 && IsMarkupSpace(bytes.front())) {
        AddSpace(source, same);
      } else {
        Add(bytes, source, same);
      }
      at = source.end;
    }
    return at;
  }

  // A byte of a text, or the characters that a reference stands for.
  struct Unit {
    absl::string_view bytes;  // valid until the next one is read
    ByteRange source;
    bool same = true;  // not a reference
  };
  Unit ReadUnit(absl::string_view text, int at, bool in_attribute) {
    decoded_.clear();
    const int length =
        text[at] == '&' ? DecodeReference(text, at, options_.syntax, in_attribute, decoded_) : 0;
    if (length == 0) return {text.substr(at, 1), {at, at + 1}};
    return {decoded_, {at, at + length}, /*same=*/false};
  }

  // Folds white space: none at the begin of a line, and one blank for several.
  void AddSpace(ByteRange source, bool same) {
    if (last_visible_ >= 0) out_.codes_[last_visible_].space_after = true;
    if (block_.empty() || block_.back() == ' ') {
      space_ = true;
      return;
    }
    const int visible = std::exchange(last_visible_, -1);
    if (absl::StrContains(".!?", block_.back())) EndSentence();
    Add(" ", source, same);
    last_visible_ = visible;
    space_ = true;
  }

  void AddAttribute(const MarkupAttribute& attribute) {
    if (!IsTextAttribute(attribute, options_)) return;
    const auto begin = static_cast<int>(attribute.value.data() - fragment_.data());
    const int end = begin + static_cast<int>(attribute.value.size());
    std::string& text = attribute_text_;
    const auto plain = static_cast<int>(text.size());
    const absl::string_view source = fragment_.substr(0, end);
    for (int at = begin; at < end;) {
      const Unit unit = ReadUnit(source, at, /*in_attribute=*/true);
      AddTo(text, attribute_pieces_, unit.bytes, unit.source, unit.same);
      at = unit.source.end;
    }
    if (static_cast<int>(text.size()) == plain) return;
    block_attributes_.push_back({.source = {begin, end},
                                 .plain = {plain, static_cast<int>(text.size())},
                                 .quote = attribute.quote});
    text.push_back('\n');
  }

  // Ends the line of a block.
  void EndBlock() {
    EndSentence();
    joint_ = false;
    ended_ = {};
    const int attributes_begin = PlainSize();
    for (AttributeText& attribute : block_attributes_) {
      attribute.plain = {attributes_begin + attribute.plain.begin,
                         attributes_begin + attribute.plain.end};
      out_.attributes_.push_back(attribute);
    }
    Move(attribute_text_, attribute_pieces_);
    const int begin = PlainSize();
    for (; placed_ < out_.codes_.size(); ++placed_) out_.codes_[placed_].at += begin;
    Move(block_, block_pieces_);
    if (PlainSize() > begin) out_.text_.push_back('\n');
    block_attributes_.clear();
    last_visible_ = -1;
    apart_ = false;
    space_ = true;
    ++line_;
  }

  void Move(std::string& text, std::vector<Piece>& pieces) {
    const int begin = PlainSize();
    for (Piece& piece : pieces) {
      piece.begin += begin;
      out_.pieces_.push_back(piece);
    }
    out_.text_ += text;
    text.clear();
    pieces.clear();
  }

  const absl::string_view fragment_;
  const MarkupOptions& options_;
  const std::vector<bool> without_;
  MarkedText& out_;

  MarkupTokenizer tokenizer_;
  MarkupToken token_;
  ByteRange rest_;  // of the text that is read
  std::vector<Open> open_;
  std::unordered_map<std::string, std::vector<size_t>> by_name_;  // indices into open_
  std::vector<size_t> blocks_;                                    // the same, of blocks
  std::optional<Copied> copied_;
  // The block so far.
  std::string block_;
  std::vector<Piece> block_pieces_;
  std::string attribute_text_;
  std::vector<Piece> attribute_pieces_;
  std::vector<AttributeText> block_attributes_;
  size_t placed_ = 0;      // codes before this block
  int line_ = 0;           // blocks before this one, empty ones too
  int last_visible_ = -1;  // the code after which no text came so far
  bool apart_ = false;     // words before and behind it are two
  bool space_ = true;      // white space or the begin of the line is on the left of this place
  std::string decoded_;
  absl::string_view ended_;       // the name of the element that ended here
  bool joint_ = false;            // one has ended here and another has begun
  int copies_ = 0;                // copied texts so far
  std::vector<size_t> sentence_;  // their numbers in this sentence
  std::vector<bool> harmful_;
  bool has_private_ = false;  // the fragment has characters that are like stand-ins
};

MarkedTextReader::MarkedTextReader(absl::string_view fragment, const MarkupOptions& options)
    : fragment_(fragment),
      options_(options),
      reader_(std::make_unique<MarkedText::Reader>(fragment, options, std::vector<bool>(), text_)) {
}
MarkedTextReader::~MarkedTextReader() = default;

int64_t MarkedTextReader::Step(int64_t work) {
  int64_t left = work;
  if (!reader_->Read(left)) return work - left;
  std::vector<bool> harmful = reader_->Harmful();
  reader_ = nullptr;
  if (harmful.empty()) return work - left;
  text_ = MarkedText();
  reader_ = std::make_unique<MarkedText::Reader>(fragment_, options_, std::move(harmful), text_);
  return work - left;
}

MarkedText::MarkedText(absl::string_view fragment, const MarkupOptions& options) {
  MarkedTextReader reader(fragment, options);
  while (!reader.done()) reader.Step(std::numeric_limits<int32_t>::max());
  *this = reader.Take();
}

}  // namespace linnet::server
