#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "linnet/v1/bundle.pb.h"
#include "model/runtime/bundle/sha256.h"
#include "tests/support/places.h"

namespace linnet::test {

// The manifest of a bundle with tests/data/tiny.spm; change it before it is written. Its model.pt
// is not a model: an echo engine serves the bundle.
inline linnet::v1::BundleManifest TinyManifest(const std::string& name, linnet::v1::Task task,
                                               const std::string& source,
                                               const std::string& target) {
  linnet::v1::BundleManifest manifest;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(R"({
    "schema_version": 1, "version": "test",
    "architecture": {
      "encoder_mixers": ["dynamic_conv"], "encoder_kernel_sizes": [3], "decoder_mixers": ["dynamic_conv"],
      "decoder_kernel_sizes": [3], "model_dimension": 8, "feed_forward_dimension": 16, "heads": 2, "parameters": 99,
      "weight_type": "float32"},
    "vocabulary": {"size": 400, "bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3},
    "limits": {"max_source_tokens": 64, "max_target_tokens": 80},
    "default_options": {"beam_size": 2, "max_target_ratio": 1.0, "max_target_tokens": 10},
    "model_file": "model.pt", "source_tokenizer_file": "tiny.spm", "target_tokenizer_file": "tiny.spm"})",
                                                          &manifest)
                  .ok());
  manifest.set_name(name);
  manifest.set_task(task);
  manifest.set_source_language_code(source);
  manifest.set_target_language_code(target);
  return manifest;
}

inline void WriteBundle(const std::filesystem::path& folder, linnet::v1::BundleManifest manifest) {
  namespace fs = std::filesystem;
  fs::create_directories(folder);
  std::ofstream(folder / "model.pt") << "echo";
  fs::copy_file(SourceDir() / "tests/data/tiny.spm", folder / "tiny.spm",
                fs::copy_options::overwrite_existing);
  for (const char* name : {"model.pt", "tiny.spm"}) {
    linnet::v1::BundleFile& file = *manifest.add_files();
    file.set_name(name);
    file.set_bytes(static_cast<int64_t>(fs::file_size(folder / name)));
    file.set_sha256(*model::Sha256OfFile(folder / name));
  }
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(manifest, &json, options).ok());
  std::ofstream(folder / "manifest.json") << json;
}

}  // namespace linnet::test
