#include "server/request/glossary.h"

#include <limits>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "model/runtime/text/white_space.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"
#include "server/request/request_fields.h"

namespace linnet::server {
namespace {

constexpr int kMaxEntries = 256;
constexpr size_t kMaxTermBytes = 256;

std::string EntryPath(int entry, absl::string_view field) {
  return absl::StrCat("glossary.entries[", entry, "].", field);
}

absl::Status CheckTerm(const std::string& path, const std::string& text) {
  RETURN_IF_ERROR(CheckText(path, text));
  if (text.size() > kMaxTermBytes) {
    return BadField(
        path, Reason::kBadGlossary,
        absl::StrCat("has ", text.size(), " bytes, at most ", kMaxTermBytes, " are accepted"),
        {{"bytes", absl::StrCat(text.size())}, {"maxBytes", absl::StrCat(kMaxTermBytes)}});
  }
  if (model::Trimmed(text) != text) {
    return BadField(path, Reason::kBadGlossary,
                    "begins or ends with white space, which no word has: leave it out");
  }
  return absl::OkStatus();
}

std::vector<std::string> SourceTexts(const linnet::v1::Glossary& glossary) {
  std::vector<std::string> sources;
  for (const linnet::v1::GlossaryEntry& entry : glossary.entries())
    sources.push_back(entry.source_text());
  return sources;
}

}  // namespace

int64_t GlossaryBytes(const linnet::v1::Glossary& glossary) {
  // A node of TermFinder's trie for each character: an entry of a hash table that may have just
  // grown, and a number.
  constexpr int64_t kBytesPerNode = 64;
  int64_t bytes = 4096;
  for (const linnet::v1::GlossaryEntry& entry : glossary.entries())
    bytes += kBytesPerNode * std::ssize(entry.source_text());
  return bytes;
}

absl::Status CheckGlossary(const linnet::v1::Glossary& glossary) {
  if (glossary.entries_size() > kMaxEntries) {
    return BadField("glossary", Reason::kBadGlossary,
                    absl::StrCat("has ", glossary.entries_size(), " entries, at most ", kMaxEntries,
                                 " are accepted: send those that the texts need"),
                    {{"entries", absl::StrCat(glossary.entries_size())},
                     {"maxEntries", absl::StrCat(kMaxEntries)}});
  }
  std::set<std::string> sources;
  const auto as_compared = [&](const std::string& source) {
    return glossary.ignore_case() ? model::FoldCase(source) : source;
  };
  for (int i = 0; i < glossary.entries_size(); ++i) {
    const linnet::v1::GlossaryEntry& entry = glossary.entries(i);
    const std::string path = EntryPath(i, "source_text");
    RETURN_IF_ERROR(CheckTerm(path, entry.source_text()));
    if (!sources.insert(as_compared(entry.source_text())).second) {
      return BadField(path, Reason::kBadGlossary,
                      absl::StrCat("repeats the source of an earlier entry",
                                   glossary.ignore_case() ? ", as case is ignored" : "",
                                   ": give each source once"));
    }
    if (entry.target_text().empty()) continue;
    RETURN_IF_ERROR(CheckTerm(EntryPath(i, "target_text"), entry.target_text()));
  }
  return absl::OkStatus();
}

Glossary::Glossary(const linnet::v1::Glossary& glossary)
    : glossary_(glossary), finder_(SourceTexts(glossary), glossary.ignore_case()) {}

std::vector<TermUse> Glossary::Find(absl::string_view text) const {
  std::vector<TermUse> uses;
  int64_t work = std::numeric_limits<int64_t>::max();
  FindPart(text, 0, work, uses);
  return uses;
}

int Glossary::FindPart(absl::string_view text, int begin, int64_t& work,
                       std::vector<TermUse>& uses) const {
  std::vector<model::TermPlace> places;
  const int end = finder_.FindPart(text, begin, work, places);
  for (const model::TermPlace& place : places) {
    const std::string& target = glossary_.entries(place.term).target_text();
    const absl::string_view source = text.substr(place.begin, place.end - place.begin);
    uses.push_back(
        {place.term, place.begin, place.end, target.empty() ? std::string(source) : target});
  }
  return end;
}

void FillTerms(const std::vector<TermUse>& uses, absl::string_view text, int source_begin,
               int begin, linnet::v1::Segment& segment) {
  std::map<std::string, std::vector<model::TermPlace>>
      free;  // occurrences not yet assigned to a use
  for (const TermUse& use : uses) {
    auto found = free.find(use.target);
    if (found == free.end()) {
      found = free.emplace(use.target,
                           model::TermFinder({use.target}, /*ignore_case=*/false).Find(text))
                  .first;
    }
    linnet::v1::GlossaryTerm& term = *segment.add_glossary_terms();
    term.set_entry(use.entry);
    term.set_source_begin(source_begin + use.begin);
    term.set_source_end(source_begin + use.end);
    std::vector<model::TermPlace>& places = found->second;
    if (places.empty()) continue;
    term.set_met(true);
    term.set_target_begin(begin + places.front().begin);
    term.set_target_end(begin + places.front().end);
    places.erase(places.begin());
  }
}

}  // namespace linnet::server
