#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "linnet/v1/bundle.pb.h"
#include "model/runtime/search.h"
#include "model/runtime/tokenizer.h"

namespace linnet::model {

// A bundle on disk that was checked: the manifest is complete and consistent, and every file it
// lists is there with the size and sha256 that it says.
struct Bundle {
  std::filesystem::path path;
  linnet::v1::BundleManifest manifest;

  std::filesystem::path model_file() const { return path / manifest.model_file(); }
  bool has_tokenizers() const { return !manifest.source_tokenizer_file().empty(); }
  // Only if it has tokenizers.
  TokenizerSpec source_tokenizer() const;
  TokenizerSpec target_tokenizer() const;
  std::string model_sha256() const;

  SpecialTokens special_tokens() const;
  int source_vocabulary_size() const;
  // The default options for a source of that many tokens (eos included): max_target_ratio makes the
  // cap depend on it.
  SearchOptions default_options(int source_tokens) const;
};

// NotFoundError if there is no bundle; FailedPreconditionError, saying which file and what is
// wrong, if it is damaged or made for another schema.
absl::StatusOr<Bundle> ReadBundle(const std::filesystem::path& path);

// Folders with a manifest directly below `root`, or `root` itself if it has one, by name.
// NotFoundError if there is none.
absl::StatusOr<std::vector<std::filesystem::path>> FindBundles(const std::filesystem::path& root);

}  // namespace linnet::model
