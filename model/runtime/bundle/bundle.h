#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "linnet/v1/bundle.pb.h"
#include "model/runtime/bundle/signature.h"
#include "model/runtime/search/search_options.h"
#include "model/runtime/search/token.h"
#include "model/runtime/search/token_grammar.h"
#include "model/runtime/tokenizer/tokenizer.h"

namespace linnet::model {

// A checked bundle on disk: the manifest is complete and consistent, and every file that it lists
// exists with the listed size and sha256.
struct Bundle {
  std::filesystem::path path;
  linnet::v1::BundleManifest manifest;
  // sha256 of the bytes that `manifest` was parsed from and whose signature was checked.
  std::string manifest_sha256 = {};

  std::filesystem::path model_file() const { return path / manifest.model_file(); }
  bool has_tokenizers() const { return !manifest.source_tokenizer_file().empty(); }
  // These two require has_tokenizers().
  TokenizerSpec source_tokenizer() const;
  TokenizerSpec target_tokenizer() const;
  std::string model_sha256() const;
  // The grammar of targets; null if the manifest has text_grammar off. Reads the tokenizer.
  absl::StatusOr<std::shared_ptr<const TokenGrammar>> target_grammar() const;

  SpecialTokens special_tokens() const;
  int source_vocabulary_size() const;
  // The decoder layer whose attention is the alignment: Architecture.alignment_layer.
  int alignment_layer() const;
  // The default options for a source of that many tokens (eos included), on which the max target
  // length depends by max_target_ratio.
  SearchOptions default_options(int source_tokens) const;
  int default_max_target_tokens(int source_tokens) const;
};

// Returns NotFoundError if there is no bundle, and FailedPreconditionError with the file and the
// reason if it is damaged or has another schema. With `keys` the bundle must be signed:
// manifest.json.sig must be a signature by one of them of the bytes of manifest.json, which contain
// the sha256 of every other file. Otherwise it returns PermissionDeniedError, before it parses
// anything.
absl::StatusOr<Bundle> ReadBundle(const std::filesystem::path& path,
                                  const BundleKeys* keys = nullptr);
// The sha256 of the manifest of the bundle at `path`, as in Bundle::manifest_sha256.
absl::StatusOr<std::string> ManifestSha256(const std::filesystem::path& path);
// Checks that the files have not changed since the bundle was read.
absl::Status CheckFiles(const Bundle& bundle);

}  // namespace linnet::model
