#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/text/document_stream.h"
#include "tests/server/text/text_fixture.h"

namespace linnet::server {

using linnet::v1::TranslateDocumentRequest;
using linnet::v1::TranslateDocumentResponse;
using Document = DocumentStream<TranslateDocumentTypes>;

inline TranslateDocumentRequest Lines(std::vector<std::string> texts, int64_t first_id) {
  TranslateDocumentRequest message;
  for (std::string& text : texts) {
    message.add_lines()->set_text(std::move(text));
    message.mutable_lines()->rbegin()->set_sequence_id(first_id++);
  }
  return message;
}

inline TranslateDocumentRequest Settings(bool keep_order = false) {
  TranslateDocumentRequest message;
  message.mutable_settings()->set_source_language_code("en");
  message.mutable_settings()->set_target_language_code("de");
  message.set_keep_order(keep_order);
  return message;
}

// A client that reads everything at once.
class Reader {
 public:
  explicit Reader(TextFixture& fixture)
      : document(std::make_shared<Document>(*fixture.calls, absl::InfiniteFuture(),
                                            [changed = changed_] { changed->Wake(); })) {}

  // Reads results while `waiting` holds.
  void ReadWhile(const std::function<bool()>& waiting) {
    while (true) {
      const int seen = changed_->count();
      while (auto result = document->TakeResult()) {
        results.push_back(*std::move(result));
        document->Written();
      }
      if (!waiting()) return;
      changed_->WaitPast(seen);
    }
  }
  void Send(TranslateDocumentRequest message) {
    ReadWhile([&] { return !document->wants_more(); });
    document->Take(std::move(message));
  }
  absl::Status ReadToTheEnd() {
    ReadWhile([&] { return !document->finished().has_value(); });
    return *document->finished();
  }

 private:
  class Counter {
   public:
    void Wake() {
      MutexLock lock(mu_);
      ++count_;
      changed_.NotifyAll();
    }
    int count() {
      MutexLock lock(mu_);
      return count_;
    }
    void WaitPast(int seen) {
      MutexLock lock(mu_);
      while (count_ == seen) changed_.Wait(mu_);
    }

   private:
    Mutex mu_;
    CondVar changed_;
    int count_ ABSL_GUARDED_BY(mu_) = 0;
  };
  // Shared with the document, which may call it after the reader is destroyed.
  const std::shared_ptr<Counter> changed_ = std::make_shared<Counter>();

 public:
  std::vector<TranslateDocumentResponse> results;
  std::shared_ptr<Document> document;
};

inline std::vector<int64_t> Ids(const Reader& reader) {
  std::vector<int64_t> ids;
  for (const auto& result : reader.results) ids.push_back(result.sequence_id());
  return ids;
}

}  // namespace linnet::server
