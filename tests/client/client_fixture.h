#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"
#include "tests/client/quick_client.h"

namespace linnet::client {

class ClientTest : public ::testing::Test {
 protected:
  ClientOptions Options() const { return QuickOptions(server_.address()); }
  // Answers the calls with these statuses; the last one repeats.
  void Answer(std::vector<grpc::Status> statuses) {
    server_.on_translate = [this, statuses](auto&, const v1::TranslateRequest& request,
                                            v1::TranslateResponse& response) {
      const size_t call = calls_++;
      for (const std::string& content : request.contents()) {
        response.add_translations()->set_text(content);
      }
      return statuses[std::min(call, statuses.size() - 1)];
    };
  }

  // For handlers; they outlive the server, which waits for its handlers to end.
  std::atomic<size_t> calls_ = 0;
  absl::Notification arrived_, answered_, seen_cancelled_;
  FakeServer server_;
};

}  // namespace linnet::client
