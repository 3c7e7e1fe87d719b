#include "model/runtime/bundle/bundle.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/bundle/languages.h"
#include "model/runtime/bundle/manifest.h"
#include "model/runtime/bundle/sha256.h"
#include "proto/read_file.h"
#include "proto/status_macros.h"

namespace linnet::model {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "manifest.json";
constexpr char kSignature[] = "manifest.json.sig";
constexpr int64_t kMaxSignatureBytes = 4096;  // a longer file is not a signature

template <typename... Parts>
absl::Status Damaged(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}

absl::Status CheckFile(const fs::path& folder, const linnet::v1::BundleFile& listed) {
  const fs::path path = folder / listed.name();
  std::error_code error;
  if (!fs::exists(path, error)) return Damaged(path.string(), " is missing");
  if (!fs::is_regular_file(path, error)) return Damaged(path.string(), " is not a regular file");
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) return Damaged(path.string(), ": ", error.message());
  if (listed.bytes() < 0 || bytes != static_cast<uintmax_t>(listed.bytes())) {
    return Damaged(path.string(), " has ", bytes, " bytes, the manifest says ", listed.bytes(),
                   ": copy the bundle again");
  }
  ASSIGN_OR_RETURN(const std::string sha256, Sha256OfFile(path));
  if (sha256 != listed.sha256()) {
    return Damaged(path.string(), " has sha256 ", sha256, ", the manifest says \"", listed.sha256(),
                   "\": copy the bundle again");
  }
  return absl::OkStatus();
}

absl::Status CheckSignature(const fs::path& folder, const std::string& manifest,
                            const BundleKeys& keys) {
  const fs::path file = folder / kSignature;
  const absl::StatusOr<std::string> signature = ReadFile(file, kMaxSignatureBytes);
  if (!signature.ok()) {
    return absl::PermissionDeniedError(
        absl::StrCat("bundle ", folder.string(), " is not signed: ", signature.status().message()));
  }
  if (absl::Status status = keys.Verify(manifest, *signature); !status.ok())
    return absl::PermissionDeniedError(absl::StrCat(file.string(), ": ", status.message()));
  return absl::OkStatus();
}

fs::path FileOrNone(const fs::path& folder, const std::string& name) {
  return name.empty() ? fs::path() : folder / name;
}

}  // namespace

TokenizerSpec Bundle::source_tokenizer() const {
  return {.subword_file = path / manifest.source_tokenizer_file(),
          .subword_kind = manifest.subword_kind(),
          .vocabulary_file = FileOrNone(path, manifest.source_vocabulary_file()),
          .word_tokenizer = manifest.word_tokenizer(),
          .language_code = manifest.source_language_code(),
          .placeholders = {manifest.placeholders().begin(), manifest.placeholders().end()},
          .capitals_mark = manifest.capitals_mark(),
          .control_ids = SourceControlIds(manifest),
          .vocabulary_size = source_vocabulary_size()};
}

TokenizerSpec Bundle::target_tokenizer() const {
  return {.subword_file = path / manifest.target_tokenizer_file(),
          .subword_kind = manifest.subword_kind(),
          .vocabulary_file = FileOrNone(path, manifest.target_vocabulary_file()),
          .word_tokenizer = manifest.word_tokenizer(),
          .language_code = manifest.target_language_code(),
          .placeholders = {manifest.placeholders().begin(), manifest.placeholders().end()},
          .capitals_mark = manifest.capitals_mark(),
          .control_ids = TargetControlIds(manifest),
          .vocabulary_size = manifest.vocabulary().size()};
}

absl::StatusOr<std::shared_ptr<const TokenGrammar>> Bundle::target_grammar() const {
  if (!manifest.text_grammar()) return nullptr;
  ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(target_tokenizer(), special_tokens()));
  return std::make_shared<const TokenGrammar>(tokenizer->Grammar(manifest.vocabulary().size()));
}

std::string Bundle::model_sha256() const {
  for (const linnet::v1::BundleFile& file : manifest.files()) {
    if (file.name() == manifest.model_file()) return file.sha256();
  }
  return "";
}

SpecialTokens Bundle::special_tokens() const {
  const linnet::v1::Vocabulary& vocabulary = manifest.vocabulary();
  return {.bos = vocabulary.bos_id(),
          .pad = vocabulary.pad_id(),
          .eos = vocabulary.eos_id(),
          .unk = vocabulary.unk_id(),
          .start = vocabulary.has_start_id() ? vocabulary.start_id() : vocabulary.eos_id()};
}

int Bundle::source_vocabulary_size() const {
  const linnet::v1::Vocabulary& vocabulary = manifest.vocabulary();
  return vocabulary.has_source_size() ? vocabulary.source_size() : vocabulary.size();
}

int Bundle::alignment_layer() const {
  const linnet::v1::Architecture& architecture = manifest.architecture();
  if (architecture.has_alignment_layer()) return architecture.alignment_layer();
  return std::max(architecture.decoder_mixers_size() - 2, 0);
}

SearchOptions Bundle::default_options(int source_tokens) const {
  return DefaultOptions(manifest, source_tokens);
}

int Bundle::default_max_target_tokens(int source_tokens) const {
  return DefaultMaxTargetTokens(manifest, source_tokens);
}

absl::StatusOr<std::string> ManifestSha256(const fs::path& path) {
  ASSIGN_OR_RETURN(const std::string json, ReadManifestBytes(path / kManifest));
  return Sha256OfBytes(json);
}

absl::Status CheckFiles(const Bundle& bundle) {
  for (const linnet::v1::BundleFile& listed : bundle.manifest.files()) {
    RETURN_IF_ERROR(CheckFile(bundle.path, listed));
  }
  return absl::OkStatus();
}

absl::StatusOr<Bundle> ReadBundle(const fs::path& path, const BundleKeys* keys) {
  std::error_code error;
  const fs::path file = path / kManifest;
  if (!fs::exists(file, error)) {
    return absl::NotFoundError(
        absl::StrCat("no bundle at ", path.string(), ": there is no ", kManifest));
  }
  ASSIGN_OR_RETURN(const std::string json, ReadManifestBytes(file));
  if (keys != nullptr) {
    RETURN_IF_ERROR(CheckSignature(path, json, *keys));
  }
  // Parse the same bytes that were verified.
  ASSIGN_OR_RETURN(linnet::v1::BundleManifest manifest, ReadManifest(file, json));
  ASSIGN_OR_RETURN(std::string sha256, Sha256OfBytes(json));
  Bundle bundle = {
      .path = path, .manifest = std::move(manifest), .manifest_sha256 = std::move(sha256)};
  RETURN_IF_ERROR(CheckFiles(bundle));
  return bundle;
}

}  // namespace linnet::model
