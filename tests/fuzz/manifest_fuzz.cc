// model::ReadBundle: any bytes as the manifest of a folder with the files of a small bundle. After
// a 'p' they are a serialised linnet.v1.BundleManifest, so that mutations change values without
// breaking the JSON.
#include <google/protobuf/stubs/logging.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "google/protobuf/util/json_util.h"
#include "model/runtime/bundle/bundle.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_bundle.h"

namespace {

namespace model = linnet::model;

void Write(const std::filesystem::path& folder, const std::string& manifest) {
  // A new file each time: truncating one makes ext4 wait for the disk.
  std::filesystem::remove(folder / "manifest.json");
  std::ofstream(folder / "manifest.json", std::ios::binary) << manifest;
}

std::string JsonOf(const linnet::v1::BundleManifest& manifest) {
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const bool written = google::protobuf::util::MessageToJsonString(manifest, &json, options).ok();
  return written ? json : "";  // some text is not UTF-8
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::filesystem::path& folder = *[] {
    google::protobuf::SetLogHandler(nullptr);  // It prints a line for each text that is not UTF-8.
    static const linnet::test::TemporaryFolder temporary;
    linnet::test::WriteBundle(
        temporary.path(),
        linnet::test::TinyManifest("fuzz", linnet::v1::TASK_TRANSLATE, "en", "de"));
    return new std::filesystem::path(temporary.path());
  }();
  std::string text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('p')) {
    linnet::v1::BundleManifest manifest;
    if (!manifest.ParseFromString(text.substr(1))) return 0;
    text = JsonOf(manifest);
  }
  Write(folder, text);
  const auto bundle = model::ReadBundle(folder);
  if (!bundle.ok()) {
    FUZZ_CHECK(bundle.status().code() == absl::StatusCode::kFailedPrecondition);
    FUZZ_CHECK(!bundle.status().message().empty());
    return 0;
  }
  // An accepted bundle can be served: its default options are valid for a search.
  const auto& limits = bundle->manifest.limits();
  const model::SearchLimits max = {.max_beam_size = std::numeric_limits<int>::max(),
                                   .max_target_tokens = limits.max_target_tokens(),
                                   .max_source_tokens = limits.max_source_tokens()};
  for (int tokens : {1, 2, 17, limits.max_source_tokens()}) {
    const absl::Status status = model::CheckOptions(bundle->default_options(tokens), max);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    FUZZ_CHECK(status.ok());
  }
  // And it survives a round trip through its JSON.
  Write(folder, JsonOf(bundle->manifest));
  const auto again = model::ReadBundle(folder);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(again->manifest.SerializeAsString() == bundle->manifest.SerializeAsString());
  if (bundle->has_tokenizers()) {
    model::Tokenizer::Load(bundle->source_tokenizer(), bundle->special_tokens()).IgnoreError();
  }
  return 0;
}
