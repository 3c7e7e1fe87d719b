// The configuration of a server: settings file, flags, environment, and token table; and the
// traceparent header. Any bytes.
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/runtime/text/segmenter.h"
#include "server/base/trace_context.h"
#include "server/config/address.h"
#include "server/config/options.h"
#include "server/identity/token_table.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary_folder.h"

namespace linnet::server {
namespace {

std::string FileWith(const std::string& text) {
  static const auto& path = *[] {
    static const test::TemporaryFolder folder;
    return new std::filesystem::path(folder.path() / "settings");
  }();
  std::filesystem::remove(path);  // truncating it makes ext4 wait for the disk
  std::ofstream(path, std::ios::binary) << text;
  return absl::StrCat("--config=", path.string());
}

ParsedOptions Parse(const std::vector<std::string>& flags,
                    const std::vector<std::string>& environment = {}) {
  std::vector<const char*> arguments = {"linnet-server"};
  for (const std::string& flag : flags) arguments.push_back(flag.c_str());
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data(), environment);
}

// The server either runs with valid options or has an error message.
void Check(const ParsedOptions& parsed) {
  if (!parsed.run) {
    FUZZ_CHECK(!parsed.text.empty());
    FUZZ_CHECK(parsed.exit_status == 0 || parsed.exit_status == 2);
    return;
  }
  FUZZ_CHECK(parsed.text.empty());
  FUZZ_CHECK(!parsed.options.models.empty());
  FUZZ_CHECK(parsed.options.max_batch_rows > 0);
  FUZZ_CHECK(parsed.options.admission.max_tokens > 0 && parsed.options.admission.max_bytes > 0);
  FUZZ_CHECK(parsed.options.drain_timeout >= absl::ZeroDuration());
  FUZZ_CHECK(CheckAddress(parsed.options.listen).ok());
}

std::vector<std::string> Lines(const std::string& text) {
  // As from the system: no argument has a zero byte.
  std::string whole = text;
  std::erase(whole, '\0');
  return absl::StrSplit(whole, '\n');
}

void CheckTokens(const std::string& text) {
  const auto tokens = TokenTable::Parse(text);
  if (!tokens.ok()) {
    FUZZ_CHECK(tokens.status().code() == absl::StatusCode::kInvalidArgument);
    FUZZ_CHECK(!tokens.status().message().empty());
    return;
  }
  FUZZ_CHECK(tokens->Find("") == nullptr);
  for (const std::string& line : Lines(text)) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty()) continue;
    const Grant* grant = tokens->Find(words[0]);
    FUZZ_CHECK(grant == nullptr || grant->inference || grant->admin);
  }
}

void CheckTrace(const std::string& header) {
  const std::optional<TraceContext> trace = ParseTraceParent(header);
  if (!trace.has_value()) return;
  FUZZ_CHECK(trace->trace_id.size() == 32 && trace->span_id.size() == 16);
  FUZZ_CHECK(trace->trace_id.find_first_not_of("0123456789abcdef") == std::string::npos);
  FUZZ_CHECK(trace->trace_id.find_first_not_of('0') != std::string::npos);
  FUZZ_CHECK(ParseTraceParent(absl::StrCat("00-", trace->trace_id, "-", trace->span_id, "-01"))
                 ->trace_id == trace->trace_id);
}

}  // namespace
}  // namespace linnet::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace linnet::server;  // NOLINT: its only function
  linnet::fuzz::Input input(data, size);
  const int kind = input.Choose(5);
  const std::string text = input.Rest();
  switch (kind) {
    case 0: {
      const ParsedOptions parsed = Parse({FileWith(text), "--models=m"});
      Check(parsed);
      if (!parsed.run) break;
      const std::string printed = Parse({FileWith(text), "--models=m", "--print-config"}).text;
      FUZZ_CHECK(Parse({FileWith(printed), "--print-config"}).text == printed);
      break;
    }
    case 1: {
      std::vector<std::string> flags = Lines(text);
      // Files of this machine must not be read.
      std::erase_if(flags, [](const std::string& flag) { return flag.starts_with("--config"); });
      Check(Parse(flags));
      break;
    }
    case 2: {
      std::vector<std::string> environment = {"LINNET_SERVER_MODELS=m"};
      for (const std::string& line : Lines(text)) {
        if (!line.starts_with("CONFIG")) environment.push_back("LINNET_SERVER_" + line);
      }
      Check(Parse({}, environment));
      break;
    }
    case 3:
      CheckTokens(text);
      break;
    default:
      CheckTrace(text);
  }
  return 0;
}
