#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/request/glossary.h"
#include "server/request/text_request.h"
#include "server/text/prepared_text.h"
#include "server/text/text_reading.h"

namespace linnet::server {

// The remaining limits of a call.
struct PrepareLimits {
  int max_segments = std::numeric_limits<int>::max();
  HoldMemory hold;
};

// Splits and tokenises one text, and its target, and finds the entries of the request's glossary
// (null if it has none), in steps, so that the pool may do other work in between. Request, item and
// glossary must outlive it. One thread at a time may call it.
class TextPreparer {
 public:
  TextPreparer(const TextRequest& request, const TextItem& item, const Glossary* glossary,
               PrepareLimits limits);
  ~TextPreparer();

  // Does about that much work (model::TextSplitter::Step) and returns how much it was.
  // INVALID_ARGUMENT with the item's path if the model cannot read the text or it has too many
  // segments, or the error of `hold`.
  absl::StatusOr<int64_t> Step(int64_t work);
  bool done() const;
  // The segments so far of a text that is split; of another one, those of all of it when it is
  // done. MakeInput of their beginning does not change.
  std::vector<PreparedSegment>& segments();
  // The text, which is done.
  PreparedText Take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Prepares a text in one step.
absl::StatusOr<PreparedText> PrepareText(const TextRequest& request, const TextItem& item,
                                         const Glossary* glossary, const PrepareLimits& limits);

}  // namespace linnet::server
