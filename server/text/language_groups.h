#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "linnet/v1/text_service.pb.h"
#include "server/admission/admission.h"
#include "server/base/mutex.h"
#include "server/request/text_request.h"
#include "server/schedule/cancellation.h"
#include "server/text/staged_call.h"

namespace linnet::server {

// Sets the detected language of each text, which the items have. Without a detection it does
// nothing.
void AddDetectedLanguages(const std::vector<TextItem>& items,
                          linnet::v1::TranslateResponse& response);
void AddDetectedLanguages(const std::vector<TextItem>& items,
                          linnet::v1::SummarizeResponse& response);
void AddDetectedLanguages(const std::vector<TextItem>& items, linnet::v1::ScoreResponse& response);

// A call whose texts are in several languages: those of each language are a call of their own, and
// all of these run at the same time. Puts their answers together in the order of the request, with
// the texts that are in the target language already. Response is a TranslateResponse or a
// SummarizeResponse. Shared by its calls; thread-safe.
template <typename Response>
class LanguageGroups {
 public:
  using Done = StagedCall::Done;
  using OnPart = StagedCall::OnPart;

  // `groups` have the items of the request in each language, and `unchanged` the rest. The response
  // belongs to the caller. The permit holds the request, and then the response; each group has a
  // permit of its own. If one group fails, the others are cancelled. With `on_part` the parts of
  // the stream are sent at the end, so that contents come in order.
  LanguageGroups(const std::vector<TextRequest>& groups, std::vector<TextItem> unchanged,
                 Response& response, std::shared_ptr<Permit> permit,
                 std::shared_ptr<Cancellation> cancelled, OnPart on_part, Done done);

  // The response of a group, to be filled by its call.
  Response& response(size_t group) { return groups_[group].response; }
  // Ends a call without groups: all texts are returned unchanged.
  void FinishWithoutGroups() { Finish(absl::OkStatus()); }
  // Ends a group, once. The last one ends the call.
  void GroupDone(size_t group, absl::Status status);

 private:
  struct Group {
    std::vector<int> contents;  // its texts, by their index in the request
    Response response = {};
    bool ended = false;  // guarded by mu_
  };

  void Finish(absl::Status status);
  void Merge();
  void SendParts();

  std::vector<Group> groups_;
  const std::vector<TextItem> unchanged_;
  Response& response_;
  std::shared_ptr<Permit> permit_;
  const std::shared_ptr<Cancellation> cancelled_;
  OnPart on_part_;
  Done done_;

  Mutex mu_;
  size_t open_ ABSL_GUARDED_BY(mu_);  // groups that have not ended
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

extern template class LanguageGroups<linnet::v1::TranslateResponse>;
extern template class LanguageGroups<linnet::v1::SummarizeResponse>;

}  // namespace linnet::server
