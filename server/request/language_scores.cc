#include "server/request/language_scores.h"

// The internal headers of Debian's libcld2-dev. They do not change: CLD2 has had no release since
// 2015.
#include <cld2/internal/cldutil.h>
#include <cld2/internal/lang_script.h>
#include <cld2/internal/scoreonescriptspan.h>

#include <algorithm>
#include <map>
#include <memory>

#include "model/runtime/bundle/language_code.h"
#include "server/base/mutex.h"

// The library exports these, and no header declares them.
namespace CLD2 {
extern const UTF8PropObj cld_generated_CjkUni_obj;
extern const CLD2TableSummary kCjkCompat_obj, kCjkDeltaBi_obj, kDistinctBiTable_obj, kQuad_obj,
    kQuad_obj2, kDeltaOcta_obj, kDistinctOcta_obj;
extern const short kAvgDeltaOctaScore[];
void LinearizeAll(ScoringContext* context, bool score_cjk, ScoringHitBuffer* hits);
void ProcessProbV2Tote(uint32 probabilities, Tote* tote);
}  // namespace CLD2

namespace linnet::server {
namespace {

// The penalty of each letter outside of a language's alphabet, at most so many: measured in
// tests/bench/server/detection.py. More would refuse a language for a name or a quotation.
constexpr double kLetterPenalty = 3;
constexpr int kMaxPenalties = 5;
// The score of each character in a script that only one language has.
constexpr double kScriptScore = 4;

constexpr CLD2::ScoringTables kTables = {
    &CLD2::cld_generated_CjkUni_obj, &CLD2::kCjkCompat_obj,    &CLD2::kCjkDeltaBi_obj,
    &CLD2::kDistinctBiTable_obj,     &CLD2::kQuad_obj,         &CLD2::kQuad_obj2,
    &CLD2::kDeltaOcta_obj,           &CLD2::kDistinctOcta_obj, CLD2::kAvgDeltaOctaScore};

// The key of a language's score.
std::string ScoreKey(absl::string_view code) {
  std::string primary = PrimaryLanguage(code);
  if (primary != "zh") return primary;
  return model::LanguageParts(code).script == "Hant" ? "zh-Hant" : "zh-Hans";
}

// The key of each of CLD2's languages, by its number; "" for one that is none.
const std::vector<std::string>& Keys() {
  static const auto* const keys = [] {
    auto* const all = new std::vector<std::string>(CLD2::NUM_LANGUAGES);
    for (int i = 0; i < CLD2::NUM_LANGUAGES; ++i) {
      const auto language = static_cast<CLD2::Language>(i);
      if (language != CLD2::UNKNOWN_LANGUAGE && language != CLD2::TG_UNKNOWN_LANGUAGE)
        (*all)[i] = ScoreKey(CLD2::LanguageCode(language));
    }
    return all;
  }();
  return *keys;
}

// Adds the scores of one span of the text, which is in one script and in lower case.
void AddSpan(const CLD2::LangSpan& span, CLD2::ScriptScanner& scanner, CLD2::ScoringHitBuffer& hits,
             std::vector<double>& scores) {
  const CLD2::ULScriptRType type = CLD2::ULScriptRecognitionType(span.ulscript);
  if (type == CLD2::RTypeNone || type == CLD2::RTypeOne) {
    // Its letters take two or three bytes each.
    scores[CLD2::DefaultLanguage(span.ulscript)] += kScriptScore * span.text_bytes / 3;
    return;
  }
  const bool cjk = type == CLD2::RTypeCJK;
  CLD2::ScoringContext context = {};
  context.init();
  context.ulscript = span.ulscript;
  context.prior_chunk_lang = CLD2::UNKNOWN_LANGUAGE;
  context.scoringtables = &kTables;
  context.scanner = &scanner;
  // A span begins with a blank of CLD2's own.
  for (int begin = 1; begin < span.text_bytes;) {
    hits.init();
    hits.ulscript = span.ulscript;
    hits.lowest_offset = begin;
    int end = 0;
    if (cjk) {
      end = CLD2::GetUniHits(span.text, begin, span.text_bytes, &context, &hits);
      CLD2::GetBiHits(span.text, begin, end, &context, &hits);
    } else {
      end = CLD2::GetQuadHits(span.text, begin, span.text_bytes, &context, &hits);
      CLD2::GetOctaHits(span.text, begin, end, &context, &hits);
    }
    CLD2::LinearizeAll(&context, cjk, &hits);
    CLD2::Tote tote;
    tote.Reinit();
    // Scores are in groups of four, which are not initialised before something is added to them.
    constexpr int kScores = 256, kGroup = 4;
    for (int i = 0; i < kScores; i += kGroup) tote.Add(static_cast<CLD2::uint8>(i), 0);
    // The first is a default of CLD2's.
    for (int i = 1; i < hits.next_linear; ++i)
      CLD2::ProcessProbV2Tote(hits.linear[i].langprob, &tote);
    for (int i = 1; i < kScores; ++i) {
      if (const int score = tote.GetScore(i); score > 0)
        scores[CLD2::FromPerScriptNumber(span.ulscript, static_cast<CLD2::uint8>(i))] += score;
    }
    if (end <= begin) return;
    begin = end;
  }
}

// The alphabet of a language, which is kept: there are a few hundred of them.
const model::Alphabet& FindAlphabet(absl::string_view code) {
  const model::LanguageParts parts(code);
  const std::string language = parts.names_script || parts.script == "Hant"
                                   ? parts.language + "-" + parts.script
                                   : parts.language;
  static Mutex mutex;
  static auto* const alphabets = new std::map<std::string, std::unique_ptr<model::Alphabet>>;
  MutexLock lock(mutex);
  std::unique_ptr<model::Alphabet>& alphabet = (*alphabets)[language];
  if (alphabet == nullptr) alphabet = std::make_unique<model::Alphabet>(language);
  return *alphabet;
}

}  // namespace

ScoredLanguage::ScoredLanguage(const std::string& code)
    : code(code), primary(PrimaryLanguage(code)), alphabet(&FindAlphabet(code)) {
  const std::string key = ScoreKey(code);
  for (int i = 0; i < std::ssize(Keys()); ++i) {
    if (Keys()[i] == key) numbers.push_back(i);
  }
}

LanguageScores::LanguageScores(absl::string_view text)
    : scores_(CLD2::NUM_LANGUAGES), letters_(model::CountLetters(text)) {
  CLD2::ScriptScanner scanner(text.data(), static_cast<int>(text.size()), /*is_plain_text=*/true);
  CLD2::LangSpan span;
  const auto hits = std::make_unique<CLD2::ScoringHitBuffer>();
  while (scanner.GetOneScriptSpanLower(&span)) AddSpan(span, scanner, *hits, scores_);
  for (int i = 0; i < CLD2::NUM_LANGUAGES; ++i) {
    if (scores_[i] <= max_score_ || Keys()[i].empty()) continue;
    max_score_ = scores_[i];
    nearest_ = Keys()[i];
  }
}

double LanguageScores::Of(const ScoredLanguage& language) const {
  // Languages of a key, such as Croatian and Serbian, share most of their words.
  double score = 0;
  for (int number : language.numbers) score = std::max(score, scores_[number]);
  const int outside = language.alphabet->CountOutside(letters_);
  return score - kLetterPenalty * std::min(outside, kMaxPenalties);
}

std::string PrimaryLanguage(absl::string_view code) {
  const std::string language =
      model::LanguageParts(code.substr(0, code.find_first_of("-_"))).language;
  constexpr struct {
    const char *one, *group;
  } kGroups[] = {{"nn", "no"}, {"hr", "sr"},  {"bs", "sr"},
                 {"sh", "sr"}, {"cnr", "sr"}, {"ms", "id"}};
  for (const auto& group : kGroups) {
    if (language == group.one) return group.group;
  }
  return language;
}

bool AreClose(absl::string_view a, absl::string_view b) {
  const auto set_of = [](absl::string_view code) {
    const auto& keys = Keys();
    const auto known = std::find(keys.begin(), keys.end(), ScoreKey(code));
    return known == keys.end()
               ? 0
               : CLD2::LanguageCloseSet(static_cast<CLD2::Language>(known - keys.begin()));
  };
  const int set = set_of(a);
  return PrimaryLanguage(a) == PrimaryLanguage(b) || (set != 0 && set == set_of(b));
}

}  // namespace linnet::server
