// translate_lines SERVER FROM TO: translates standard input line by line, as a document.
#include <iostream>
#include <optional>
#include <string>

#include "linnet/client.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "translate_lines SERVER FROM TO < TEXT\n";
    return 2;
  }
  linnet::client::ClientOptions options;
  options.server = argv[1];
  auto client = linnet::client::Client::Create(options);
  if (!client.ok()) {
    std::cerr << client.status().message() << "\n";
    return 2;
  }

  linnet::v1::TranslateRequest settings;
  settings.set_source_language_code(argv[2]);
  settings.set_target_language_code(argv[3]);
  const auto next_line = []() -> std::optional<std::string> {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  };
  int failed = 0;
  const auto on_line = [&failed](int64_t index, const auto& result) {
    if (result.ok()) {
      std::cout << result->translations(0).text() << "\n";
      return true;
    }
    std::cout << "\n";  // the lines below keep their numbers
    std::cerr << "line " << index + 1 << ": " << result.status().message() << "\n";
    ++failed;
    return true;
  };
  const absl::Status status = client->TranslateDocument(settings, next_line, on_line);
  if (status.ok()) return failed == 0 ? 0 : 1;

  std::cerr << linnet::client::ErrorText(status) << "\n";
  // DetailsOf returns the details for programs: the reason, the invalid field, the retry delay.
  const linnet::client::ErrorDetails details = linnet::client::DetailsOf(status);
  if (details.retry_delay.has_value()) {
    std::cerr << "retry in " << absl::FormatDuration(*details.retry_delay) << "\n";
  }
  return 1;
}
