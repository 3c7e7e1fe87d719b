#pragma once

#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/load/cli.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"

namespace linnet::client {

// Runs linnet-load against a fake server; its output is in `out_` and `err_` afterwards.
class LoadCliTest : public ::testing::Test {
 protected:
  int Run(const std::vector<std::string>& arguments) {
    std::ostringstream out, err;
    const int exit = RunLoadCli(
        arguments, {out, err, {{"LINNET_SERVER", server_.address()}}, stop_.get_token()});
    out_ = out.str();
    err_ = err.str();
    return exit;
  }

  // A number of the JSON report at a path such as "calls", "measured".
  double Number(const std::vector<std::string>& path) {
    google::protobuf::Value value;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(out_, &value).ok()) << out_;
    for (const std::string& name : path) {
      const auto& fields = value.struct_value().fields();
      if (fields.count(name) == 0) return -1;
      value = google::protobuf::Value(fields.at(name));
    }
    return value.number_value();
  }

  // The texts of all requests.
  std::multiset<std::string> Sent() const {
    std::multiset<std::string> sent;
    for (const v1::TranslateRequest& request : server_.translate_requests()) {
      sent.insert(request.contents().begin(), request.contents().end());
    }
    return sent;
  }

  // Makes the server answer no call before it is cancelled. The thread stops the run when the first
  // one has arrived.
  std::thread StopDuringACall() {
    server_.on_translate = [this](grpc::ServerContext& context, const auto&, auto&) {
      if (!arrived_.HasBeenNotified()) arrived_.Notify();
      while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
      return grpc::Status::OK;
    };
    return std::thread([this] {
      arrived_.WaitForNotification();
      stop_.request_stop();
    });
  }

  absl::Notification arrived_;  // outlives the server
  FakeServer server_;
  std::stop_source stop_;
  std::string out_, err_;
};

}  // namespace linnet::client
