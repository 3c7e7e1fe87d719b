#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/library/client.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// The language pairs of a model, source and target; an older server names only the first.
std::vector<std::pair<std::string, std::string>> LanguagePairs(const v1::Model& model);

// Sets the source language of a request that names neither it nor a model, if a server can answer
// from only one, directly or through a third language. Otherwise the server chooses by the texts.
absl::Status SetLanguage(Client& client, const CallOptions& call, v1::TranslateRequest& request);
absl::Status SetLanguage(Client& client, const CallOptions& call, v1::SummarizeRequest& request);
absl::Status SetLanguage(Client& client, const CallOptions& call, v1::ScoreRequest& request);

}  // namespace linnet::client
