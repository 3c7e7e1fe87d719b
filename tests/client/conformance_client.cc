// The C++ library as a program, for tests in Python:
//   conformance_client translate|each|stream|document SERVER TIMEOUT ATTEMPTS INITIAL MAX [CA CERT
//   KEY] < LINES
// prints the answer to each line. Times are in seconds, CA and the like are files. `each` makes a
// call for each line and prints an error in place of its answer.
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "client/library/client.h"

namespace linnet::client {
namespace {

absl::Status Run(Client& client, const std::string& kind) {
  v1::TranslateRequest request;
  request.set_source_language_code("en");
  request.set_target_language_code("de");
  std::string line;
  if (kind == "each") {
    while (std::getline(std::cin, line)) {
      request.clear_contents();
      request.add_contents(line);
      const absl::StatusOr<v1::TranslateResponse> response = client.Translate(request);
      std::cout << (response.ok() ? response->translations(0).text()
                                  : absl::StatusCodeToString(response.status().code()))
                << std::endl;
    }
    return absl::OkStatus();
  }
  if (kind == "document") {
    const auto next = [&line]() -> std::optional<std::string> {
      if (!std::getline(std::cin, line)) return std::nullopt;
      return line;
    };
    const auto print = [](int64_t, const absl::StatusOr<v1::TranslateResponse>& result) {
      if (result.ok()) std::cout << result->translations(0).text() << "\n";
      return result.ok();
    };
    return client.TranslateDocument(request, next, print);
  }
  while (std::getline(std::cin, line)) request.add_contents(line);
  if (kind == "stream") {
    const auto print = [](const v1::TextPart& part) {
      std::cout << part.text() << "\n";
      return true;
    };
    return client.StreamTranslate(request, print).status();
  }
  const absl::StatusOr<v1::TranslateResponse> response = client.Translate(request);
  if (!response.ok()) return response.status();
  for (const v1::Translation& translation : response->translations())
    std::cout << translation.text() << "\n";
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() != 7 && arguments.size() != 10) {
    std::cerr << "conformance_client KIND SERVER TIMEOUT ATTEMPTS INITIAL MAX [CA CERT KEY]\n";
    return 2;
  }
  ClientOptions options;
  options.server = arguments[2];
  options.timeout = absl::Seconds(std::stod(arguments[3]));
  options.retry.max_attempts = std::stoi(arguments[4]);
  options.retry.initial_backoff = absl::Seconds(std::stod(arguments[5]));
  options.retry.max_backoff = absl::Seconds(std::stod(arguments[6]));
  if (arguments.size() == 10) {
    options.tls.ca_file = arguments[7];
    options.tls.certificate_file = arguments[8];
    options.tls.key_file = arguments[9];
  }
  absl::StatusOr<Client> client = Client::Create(options);
  const absl::Status status = client.ok() ? Run(*client, arguments[1]) : client.status();
  if (!status.ok()) std::cerr << ErrorText(status) << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace linnet::client

int main(int argc, char** argv) {
  return linnet::client::Main(std::vector<std::string>(argv, argv + argc));
}
