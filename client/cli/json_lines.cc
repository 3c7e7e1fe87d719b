#include "client/cli/json_lines.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace linnet::client {

absl::StatusOr<std::string> TextOfRecord(const std::string& record, const std::string& result_key) {
  const auto json = nlohmann::json::parse(record, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("is not an object of JSON");
  const auto text = json.find("text");
  if (text == json.end() || !text->is_string()) {
    return absl::InvalidArgumentError("has no string \"text\"");
  }
  if (json.contains(result_key)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a \"", result_key, "\" already, and the answer would be a second one"));
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
  auto object = nlohmann::ordered_json::parse(record, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || object.empty()) return absl::StrCat("{\"error\": ", json, "}");
  if (!object.contains("error")) return WithMember(record, "error", json);
  object["error"] = nlohmann::ordered_json::parse(json);
  return object.dump();
}

}  // namespace linnet::client
