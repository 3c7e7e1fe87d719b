#include "client/command/source_language.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

// True if a server takes one tag for the other: "de-AT" and "de_AT.UTF-8" find a model of "de".
bool IsSameLanguage(absl::string_view a, absl::string_view b) {
  constexpr const char* kSeparators = "-_.@";
  return absl::EqualsIgnoreCase(a.substr(0, a.find_first_of(kSeparators)),
                                b.substr(0, b.find_first_of(kSeparators)));
}

// The task and the target language (empty: any) of a request, and whether two models may answer it
// through a third language.
struct Wanted {
  v1::Task task;
  std::string target;
  bool may_pivot;
};

// The one source language from which a server answers, or empty if there are several, or none that
// this side knows: then the server chooses by the texts.
absl::StatusOr<std::string> OnlyLanguage(Client& client, const CallOptions& call,
                                         const Wanted& wanted) {
  ASSIGN_OR_RETURN(v1::ListModelsResponse models, client.ListModels(call));
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const v1::Model& model : models.models()) {
    if (model.task() != wanted.task) continue;
    for (auto& pair : LanguagePairs(model)) pairs.push_back(std::move(pair));
  }
  std::set<std::string> fitting;
  for (const auto& [from, to] : pairs) {
    if (wanted.target.empty() || IsSameLanguage(to, wanted.target)) fitting.insert(from);
  }
  // The server knows more names of languages, and reports what there is.
  if (fitting.size() != 1) return "";
  const std::string& only = *fitting.begin();
  for (const auto& [from, to] : pairs) {
    // A text in `from` would be translated through the only language that fits.
    const bool pivots = IsSameLanguage(to, only) && !IsSameLanguage(from, only) &&
                        !IsSameLanguage(from, wanted.target);
    if (wanted.may_pivot && pivots) return "";
  }
  return only;
}

template <typename Request>
absl::Status SetSourceLanguage(Client& client, const CallOptions& call, Request& request) {
  if (!request.source_language_code().empty() || !request.model().empty()) return absl::OkStatus();
  const std::string& target = request.target_language_code();
  bool may_pivot = false;  // a score is always that of one model
  if constexpr (requires { request.direct_only(); }) may_pivot = !request.direct_only();
  absl::StatusOr<std::string> language =
      OnlyLanguage(client, call, {v1::TASK_TRANSLATE, target, may_pivot});
  if (language.ok()) request.set_source_language_code(*language);
  return language.status();
}

}  // namespace

std::vector<std::pair<std::string, std::string>> LanguagePairs(const v1::Model& model) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const v1::LanguagePair& pair : model.language_pairs())
    pairs.emplace_back(pair.source_language_code(), pair.target_language_code());
  if (pairs.empty()) pairs.emplace_back(model.source_language_code(), model.target_language_code());
  return pairs;
}

absl::Status SetLanguage(Client& client, const CallOptions& call, v1::TranslateRequest& request) {
  return SetSourceLanguage(client, call, request);
}

absl::Status SetLanguage(Client& client, const CallOptions& call, v1::ScoreRequest& request) {
  return SetSourceLanguage(client, call, request);
}

absl::Status SetLanguage(Client& client, const CallOptions& call, v1::SummarizeRequest& request) {
  if (!request.language_code().empty() || !request.model().empty()) return absl::OkStatus();
  absl::StatusOr<std::string> language =
      OnlyLanguage(client, call, {v1::TASK_SUMMARIZE, "", false});
  if (language.ok()) request.set_language_code(*language);
  return language.status();
}

}  // namespace linnet::client
