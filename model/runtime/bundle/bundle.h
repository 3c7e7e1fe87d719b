#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "linnet/v1/bundle.pb.h"
#include "model/runtime/bundle/signature.h"
#include "model/runtime/search/search.h"
#include "model/runtime/text/tokenizer.h"

namespace linnet::model {

// A bundle on disk that was checked: the manifest is complete and consistent, and every file it
// lists is there with the size and sha256 that it says.
struct Bundle {
  std::filesystem::path path;
  linnet::v1::BundleManifest manifest;
  // Of the bytes that `manifest` was parsed from, and whose signature was checked.
  std::string manifest_sha256 = {};

  std::filesystem::path model_file() const { return path / manifest.model_file(); }
  bool has_tokenizers() const { return !manifest.source_tokenizer_file().empty(); }
  // Only if it has tokenizers.
  TokenizerSpec source_tokenizer() const;
  TokenizerSpec target_tokenizer() const;
  std::string model_sha256() const;
  // What targets keep to; null where the manifest does not ask for it. Reads the tokenizer.
  absl::StatusOr<std::shared_ptr<const TokenGrammar>> target_grammar() const;

  SpecialTokens special_tokens() const;
  int source_vocabulary_size() const;
  // Whose attention says which token comes from which: Architecture.alignment_layer.
  int alignment_layer() const;
  // The default options for a source of that many tokens (eos included): max_target_ratio makes the
  // cap depend on it.
  SearchOptions default_options(int source_tokens) const;
};

// NotFoundError if there is no bundle; FailedPreconditionError, saying which file and what is
// wrong, if it is damaged or made for another schema. With `keys` it must also be signed: its
// manifest.json.sig is a signature by one of them of the bytes of manifest.json, which hold the
// sha256 of every other file; PermissionDeniedError otherwise, before anything of it is parsed.
absl::StatusOr<Bundle> ReadBundle(const std::filesystem::path& path,
                                  const BundleKeys* keys = nullptr);
// That its files still are what they were when it was read.
absl::Status CheckFiles(const Bundle& bundle);

// Folders with a manifest directly below `root`, or `root` itself if it has one, by name.
// NotFoundError if there is none.
absl::StatusOr<std::vector<std::filesystem::path>> FindBundles(const std::filesystem::path& root);

}  // namespace linnet::model
