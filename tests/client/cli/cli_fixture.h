#pragma once

#include <fstream>
#include <iterator>
#include <sstream>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/cli/cli.h"
#include "client/command/settings.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"
#include "tests/support/temporary_folder.h"

namespace linnet::client {

// Runs the command against a fake server; its output is in `out_` and `err_` afterwards.
class CliTest : public ::testing::Test {
 protected:
  int Run(const std::vector<std::string>& arguments, const std::string& input = "") {
    std::istringstream in(input);
    return Run(arguments, in);
  }

  int Run(const std::vector<std::string>& arguments, std::istream& in) {
    std::ostringstream out_stream;
    const int exit = Run(arguments, in, out_stream);
    out_ = out_stream.str();
    return exit;
  }

  int Run(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out) {
    std::ostringstream err_stream;
    Variables variables = variables_;
    if (!server_name_.empty()) variables["LINNET_SERVER"] = server_name_;
    const Environment environment = {in,
                                     out,
                                     err_stream,
                                     variables,
                                     in_is_terminal_,
                                     stop_.get_token(),
                                     out_is_terminal_,
                                     err_is_terminal_};
    const int exit = RunCli(arguments, environment);
    err_ = err_stream.str();
    return exit;
  }

  // The texts of all requests, in order of arrival.
  std::vector<std::string> Sent() const {
    std::vector<std::string> sent;
    for (const v1::TranslateRequest& request : server_.translate_requests()) {
      sent.insert(sent.end(), request.contents().begin(), request.contents().end());
    }
    return sent;
  }

  // For handlers; they outlive the server, which waits for its handlers to end.
  absl::Notification arrived_, answered_;
  FakeServer server_;
  std::string server_name_ = server_.address();  // LINNET_SERVER
  bool in_is_terminal_ = false;
  bool out_is_terminal_ = false;
  bool err_is_terminal_ = false;
  Variables variables_;
  std::stop_source stop_;
  std::string out_;
  std::string err_;
};

// The same with a folder for the files of `linnet translate`, from English to German.
class CliFolderTest : public CliTest {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() / name; }

  // Writes a file and returns its path.
  std::string File(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name), std::ios::binary) << content;
    return Path(name);
  }

  std::string Content(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  int Translate(std::vector<std::string> more, const std::string& input = "") {
    more.insert(more.begin(), {"translate", "--from", "en", "--to", "de"});
    return Run(more, input);
  }

  const test::TemporaryFolder folder_;
};

}  // namespace linnet::client
