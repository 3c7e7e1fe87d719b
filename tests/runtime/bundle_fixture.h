#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "model/runtime/bundle/bundle.h"
#include "model/runtime/bundle/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace linnet::model {

inline constexpr char kTinyManifest[] = R"({
  "schema_version": 1, "name": "en-de", "version": "2026-11-21", "task": "TASK_TRANSLATE",
  "source_language_code": "en", "target_language_code": "de",
  "architecture": {
    "encoder_mixers": ["dynamic_conv", "dynamic_conv"], "encoder_kernel_sizes": [3, 7],
    "decoder_mixers": ["dynamic_conv"], "decoder_kernel_sizes": [3],
    "model_dimension": 64, "feed_forward_dimension": 128, "heads": 4, "parameters": 12345, "weight_type": "bfloat16"},
  "vocabulary": {"size": 400, "bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3},
  "limits": {"max_source_tokens": 256, "max_target_tokens": 200},
  "default_options": {"beam_size": 4, "length_penalty": 0.6, "max_target_ratio": 1.5, "max_target_tokens": 10},
  "model_file": "model.pt", "source_tokenizer_file": "both.spm", "target_tokenizer_file": "both.spm",
  "golden_examples": [{"source_text": "A dog.", "target_text": "Ein Hund."}]
})";

// A bundle of two small files and a manifest that tests change before it is written and read.
class BundleTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    Write("model.pt", "weights");
    Write("both.spm", "pieces");
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(kTinyManifest, &manifest_).ok());
    List("model.pt");
    List("both.spm");
  }

  void Write(const std::string& name, const std::string& contents) {
    std::ofstream(folder_ / name, std::ios::binary) << contents;
  }
  void List(const std::string& name) {
    linnet::v1::BundleFile* file = manifest_.add_files();
    file->set_name(name);
    file->set_bytes(static_cast<int64_t>(std::filesystem::file_size(folder_ / name)));
    file->set_sha256(*Sha256OfFile(folder_ / name));
  }
  absl::StatusOr<Bundle> Read() {
    std::string json;
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    EXPECT_TRUE(google::protobuf::util::MessageToJsonString(manifest_, &json, options).ok());
    Write("manifest.json", json);
    return ReadBundle(folder_);
  }
  // Applies a change and expects a refusal with all of `parts` in the message.
  template <typename Change>
  void ExpectRefusal(Change change, const std::vector<std::string>& parts) {
    const linnet::v1::BundleManifest whole = manifest_;
    change(manifest_);
    const absl::StatusOr<Bundle> bundle = Read();
    EXPECT_EQ(bundle.status().code(), absl::StatusCode::kFailedPrecondition) << bundle.status();
    for (const std::string& part : parts) {
      EXPECT_THAT(std::string(bundle.status().message()), testing::HasSubstr(part));
    }
    manifest_ = whole;
  }

  const test::TemporaryFolder root_;
  const std::filesystem::path folder_ = root_.path() / "en-de";
  linnet::v1::BundleManifest manifest_;
};

}  // namespace linnet::model
