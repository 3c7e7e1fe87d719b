#pragma once

#include <cstddef>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/command/text/text_source.h"

namespace linnet::client {

// Consecutive texts of the input, and the request for those of them that are sent. `Kind` is one of
// text_kinds.h. Owned by BatchRunner; not thread-safe.
template <typename Kind>
struct TextBatch {
  using Request = typename Kind::Request;
  using Response = typename Kind::Response;

  struct Entry {
    Text text;
    absl::Status refusal = absl::OkStatus();  // the server's error for this text
    std::string field = "";                   // the field that the error names

    const absl::Status& problem() const { return text.problem.ok() ? refusal : text.problem; }
    bool is_sent() const { return problem().ok() && !IsBlank(text); }
  };

  // Prepares the request with the entries that are neither blank nor refused. `prototype` has
  // everything but the texts.
  static TextBatch Make(std::vector<Entry> entries, const Request& prototype) {
    TextBatch batch{std::move(entries), {}, nullptr, {}};
    auto request = std::make_shared<Request>(prototype);
    for (size_t i = 0; i < batch.entries.size(); ++i) {
      if (!batch.entries[i].is_sent()) continue;
      Kind::Add(batch.entries[i].text, request.get());
      batch.sent.push_back(i);
    }
    batch.request = request;
    return batch;
  }

  // Returns batches of at most so many texts that are sent, in their order.
  std::vector<TextBatch> Split(size_t max_texts, const Request& prototype) && {
    std::vector<TextBatch> parts;
    size_t texts = 0, begin = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
      texts += entries[i].is_sent() ? 1 : 0;
      if (texts <= max_texts) continue;
      parts.push_back(Make({std::make_move_iterator(entries.begin() + begin),
                            std::make_move_iterator(entries.begin() + i)},
                           prototype));
      texts = 1;
      begin = i;
    }
    parts.push_back(Make(
        {std::make_move_iterator(entries.begin() + begin), std::make_move_iterator(entries.end())},
        prototype));
    return parts;
  }

  std::vector<Entry> entries;
  std::vector<size_t> sent;                // indices into entries, in the order of the contents
  std::shared_ptr<const Request> request;  // shared with the thread that sends it
  std::future<absl::StatusOr<Response>> response;  // once it is sent
};

}  // namespace linnet::client
