#include "client/command/text/json_lines.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace linnet::client {

namespace {

// Arrays and objects inside one another; to write deeper ones would exhaust the stack.
constexpr int kMaxDepth = 256;

// A record; discarded if it is not JSON.
struct Record {
  nlohmann::ordered_json json;
  bool too_deep = false;
};

Record ParseRecord(const std::string& record) {
  Record parsed;
  const auto watch = [&parsed](int depth, nlohmann::ordered_json::parse_event_t, auto&) {
    parsed.too_deep = parsed.too_deep || depth > kMaxDepth;
    return true;
  };
  parsed.json = nlohmann::ordered_json::parse(record, watch, /*allow_exceptions=*/false);
  return parsed;
}

// The offset of the first lone surrogate in JSON's escapes (\ud83d), or npos. Programs that cut
// strings by UTF-16 units produce them.
size_t FindLoneSurrogate(absl::string_view record) {
  const auto unit = [record](size_t at) {
    uint32_t value = 0;
    const bool escape = absl::StartsWith(record.substr(at), "\\u") &&
                        absl::SimpleHexAtoi(record.substr(at + 2, 4), &value);
    return escape ? value : 0;
  };
  for (size_t at = 0; at < record.size(); ++at) {
    if (record[at] != '\\') continue;
    const uint32_t first = unit(at);
    if (first >= 0xDC00 && first <= 0xDFFF) return at;
    if (first >= 0xD800 && first <= 0xDBFF) {
      const uint32_t second = at + 6 < record.size() ? unit(at + 6) : 0;
      if (second < 0xDC00 || second > 0xDFFF) return at;
      at += 6;
    }
    at += first == 0 ? 1 : 5;
  }
  return absl::string_view::npos;
}

absl::Status NoObject(const std::string& record) {
  if (const size_t at = FindLoneSurrogate(record); at != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("has the lone surrogate ", record.substr(at, 6), " at byte ", at,
                     ", half of a character: escape both halves, or neither"));
  }
  try {
    const auto unused = nlohmann::json::parse(record);
  } catch (const nlohmann::json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("is not an object of JSON (see byte ", error.byte, ")"));
  } catch (const nlohmann::json::out_of_range&) {
    return absl::InvalidArgumentError("has a number that is too large for JSON's readers");
  }
  return absl::InvalidArgumentError("is not an object of JSON");
}

}  // namespace

absl::StatusOr<std::string> TextOfRecord(const std::string& record, const std::string& text_key,
                                         const std::vector<std::string>& answer_keys) {
  const auto [json, too_deep] = ParseRecord(record);
  if (!json.is_object()) return NoObject(record);
  if (too_deep) {
    return absl::InvalidArgumentError(absl::StrCat("is nested more than ", kMaxDepth, " deep"));
  }
  const auto text = json.find(text_key);
  if (text == json.end() || !text->is_string()) {
    return absl::InvalidArgumentError(absl::StrCat("has no string \"", text_key, "\""));
  }
  for (const std::string& key : answer_keys) {
    if (!json.contains(key)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("has a \"", key, "\" already, and the answer would be a second one"));
  }
  return text->get<std::string>();
}

std::string JsonString(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string WithMember(const std::string& record, const std::string& key, const std::string& json) {
  const size_t end = record.rfind('}');
  return absl::StrCat(record.substr(0, end), ", ", JsonString(key), ": ", json, record.substr(end));
}

std::string WithError(const std::string& record, const std::string& json) {
  auto [object, too_deep] = ParseRecord(record);
  if (!object.is_object() || object.empty() || too_deep)
    return absl::StrCat("{\"error\": ", json, "}");
  if (!object.contains("error")) return WithMember(record, "error", json);
  object["error"] = nlohmann::ordered_json::parse(json);
  return object.dump();
}

}  // namespace linnet::client
