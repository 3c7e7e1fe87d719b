#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/library/client.h"

namespace linnet::client {

// Options of a client that backs off for milliseconds, so that retries are fast.
inline ClientOptions QuickOptions(const std::string& server) {
  ClientOptions options;
  options.server = server;
  options.timeout = absl::Seconds(30);
  options.retry.initial_backoff = absl::Milliseconds(2);
  options.retry.max_backoff = absl::Milliseconds(4);
  return options;
}

inline Client Connect(const ClientOptions& options) {
  return std::move(Client::Create(options)).value();
}

// A request to translate English texts.
inline v1::TranslateRequest ToGerman(const std::vector<std::string>& texts) {
  v1::TranslateRequest request;
  for (const std::string& text : texts) request.add_contents(text);
  request.set_source_language_code("en");
  request.set_target_language_code("de");
  return request;
}

}  // namespace linnet::client
