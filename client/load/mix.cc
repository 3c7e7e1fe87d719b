#include "client/load/mix.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/load/texts.h"
#include "google/protobuf/util/json_util.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

using nlohmann::json;

constexpr int kMaxWords = 10000;
constexpr int kMaxTexts = 100000;

absl::Status Wrong(const std::string& what) { return absl::InvalidArgumentError(what); }

// Parses a line, and refuses a key that an object has twice: one value would be lost.
absl::StatusOr<json> ParseLine(const std::string& line) {
  std::string twice;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto see = [&](int, json::parse_event_t event, const json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value).second) twice = value;
    return true;
  };
  json object = json::parse(line, see);
  if (!twice.empty()) return Wrong(absl::StrCat("the key \"", twice, "\" is there twice"));
  return object;
}

// The value as a whole number from `min` to `max`; nlohmann's get<int>() would cut or wrap others.
bool IsWhole(const json& value, int64_t min, int64_t max) {
  return value.is_number_integer() && value.get<double>() >= static_cast<double>(min) &&
         value.get<double>() <= static_cast<double>(max);
}

template <typename Request>
absl::Status ParseRequest(const json& object, CallKind* kind) {
  Request request;
  const auto status = google::protobuf::util::JsonStringToMessage(object.dump(), &request);
  if (!status.ok()) return Wrong(std::string(status.message()));
  if (request.contents_size() > 0) return Wrong("contents come from \"file\" or \"words\"");
  kind->request = std::move(request);
  return absl::OkStatus();
}

absl::Status ParseTexts(const json& object, uint64_t seed, CallKind* kind) {
  if (object.contains("file") && object.contains("words")) {
    return Wrong("\"file\" and \"words\" exclude each other");
  }
  if (object.contains("file")) {
    const std::string file = object["file"].get<std::string>();
    ASSIGN_OR_RETURN(kind->sentences, ReadSentences(file));
    kind->texts_name = absl::StrCat(kind->sentences.size(), " texts of ", file);
  } else if (object.contains("words")) {
    const json& words = object["words"];
    if (!words.is_array() || words.size() != 2 || !IsWhole(words[0], 1, kMaxWords) ||
        !IsWhole(words[1], words[0].get<int>(), kMaxWords)) {
      return Wrong(absl::StrCat("\"words\" are the minimum and the maximum, [3, 25], from 1 to ",
                                kMaxWords));
    }
    const int min = words[0].get<int>(), max = words[1].get<int>();
    kind->sentences = MadeUpSentences(kMadeUpSentences, min, max, seed);
    kind->texts_name = absl::StrFormat("made-up texts of %d to %d words", min, max);
  }
  return absl::OkStatus();
}

absl::Status ParseKind(const json& object, uint64_t seed, CallKind* kind) {
  static const auto* const kKnown = new std::set<std::string>{
      "name", "weight", "translate", "summarize", "file", "words", "texts", "deadline"};
  if (!object.is_object()) return Wrong("is no JSON object");
  for (const auto& [key, value] : object.items()) {
    if (kKnown->count(key) == 0) {
      return Wrong(absl::StrCat("\"", key,
                                "\" is none of name, weight, translate, summarize, file, "
                                "words, texts, deadline"));
    }
  }
  if (object.contains("translate") == object.contains("summarize")) {
    return Wrong("one of \"translate\" and \"summarize\" is needed");
  }
  RETURN_IF_ERROR(object.contains("translate")
                      ? ParseRequest<v1::TranslateRequest>(object["translate"], kind)
                      : ParseRequest<v1::SummarizeRequest>(object["summarize"], kind));
  RETURN_IF_ERROR(ParseTexts(object, seed, kind));
  kind->name = object.value("name", kind->name);
  kind->weight = object.value("weight", 1.0);
  if (object.contains("texts")) {
    if (!IsWhole(object["texts"], 1, kMaxTexts))
      return Wrong(absl::StrCat("\"texts\" is not 1 to ", kMaxTexts));
    kind->texts = object["texts"].get<int>();
  }
  if (!(kind->weight > 0) || kind->weight > 1e9) return Wrong("\"weight\" is not above 0");
  if (object.contains("deadline")) {
    const std::string text = object["deadline"].get<std::string>();
    if (!absl::ParseDuration(text, &kind->deadline) || kind->deadline <= absl::ZeroDuration() ||
        kind->deadline > absl::Hours(24)) {
      return Wrong(absl::StrCat("deadline \"", text, "\" is no duration like 500ms or 2m"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<CallKind>> ReadMix(const std::string& file, const CallKind& defaults,
                                              uint64_t seed) {
  std::ifstream in(file);
  if (!in) return Wrong(absl::StrCat("cannot read ", file));
  std::vector<CallKind> kinds;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    CallKind kind = defaults;
    kind.name = absl::StrCat("line ", number);
    absl::Status status;
    try {
      const absl::StatusOr<json> object = ParseLine(line);
      status = object.ok() ? ParseKind(*object, seed, &kind) : object.status();
    } catch (const json::exception& error) {  // also thrown for a value of another type
      status = Wrong(error.what());
    }
    if (!status.ok()) {
      return Wrong(absl::StrCat(file, ", line ", number, ": ", status.message()));
    }
    for (const CallKind& earlier : kinds) {
      if (earlier.name == kind.name) {
        return Wrong(absl::StrCat(file, ", line ", number, ": the name \"", kind.name,
                                  "\" is that of an earlier line, give each its own"));
      }
    }
    kinds.push_back(std::move(kind));
  }
  if (kinds.empty()) return Wrong(absl::StrCat(file, " has no line with a call in it"));
  return kinds;
}

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014).
double UniformDraw(uint64_t seed, int64_t index, uint64_t stream) {
  uint64_t z =
      (seed * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(index)) * 0xD1342543DE82EF95 + stream;
  for (int round = 0; round < 2; ++round) {
    z += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
  }
  return static_cast<double>(z >> 11) * 0x1p-53;
}

size_t PickKind(const std::vector<CallKind>& kinds, uint64_t seed, int64_t index) {
  double all = 0;
  for (const CallKind& kind : kinds) all += kind.weight;
  double left = UniformDraw(seed, index, 0) * all;
  for (size_t kind = 0; kind + 1 < kinds.size(); ++kind) {
    left -= kinds[kind].weight;
    if (left < 0) return kind;
  }
  return kinds.size() - 1;
}

}  // namespace linnet::client
