#include "model/runtime/bundle/manifest.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "model/runtime/bundle/languages.h"
#include "proto/read_file.h"

namespace linnet::model {
namespace {

namespace fs = std::filesystem;
using linnet::v1::BundleManifest;

constexpr int kSchemaVersion = 1;
constexpr int64_t kMaxManifestBytes = 4 << 20;
constexpr int kMaxKernelSize = 65535;                  // no text has as many tokens
constexpr int64_t kMaxParameters = 1'000'000'000'000;  // no engine of ours could load them
constexpr size_t kMaxQuotedBytes = 200;
constexpr int kMaxNameBytes = 64;
constexpr int kMaxTokens = 1 << 20;
constexpr int kMaxVocabulary = 1 << 24;
constexpr int kMaxRatio = 1000;

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}

// Protobuf's message has the reason, the place in the file, and a line that points at it. The first
// two quote the file, which may contain any bytes if it is damaged.
std::string Printable(const std::string& message) {
  const std::vector<std::string> lines = absl::StrSplit(message, '\n');
  std::string shown(absl::StripSuffix(lines[0], "."));
  if (lines.size() > 1) absl::StrAppend(&shown, " at: ", lines[1]);
  const bool cut = shown.size() > kMaxQuotedBytes;
  if (cut) shown.resize(kMaxQuotedBytes);
  return absl::StrCat(absl::CHexEscape(shown), cut ? "..." : "");
}

absl::StatusOr<BundleManifest> ParseManifest(const std::string& json) {
  BundleManifest manifest;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &manifest, options);
  if (!status.ok()) return Wrong("is not a manifest: ", Printable(std::string(status.message())));
  return manifest;
}

bool IsName(const std::string& name) {
  const auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= kMaxNameBytes && letter_or_digit(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return letter_or_digit(c) || c == '-' || c == '_' || c == '.';
         });
}

absl::Status CheckIdentity(const BundleManifest& manifest) {
  if (manifest.schema_version() != kSchemaVersion) {
    return Wrong("schema_version is ", manifest.schema_version(), ", this build reads ",
                 kSchemaVersion);
  }
  if (!IsName(manifest.name())) {
    return Wrong("name \"", manifest.name(), "\" must be 1 to ", kMaxNameBytes,
                 " lower-case letters, digits, '-', '_' or '.', a letter or digit first");
  }
  if (manifest.version().empty()) return Wrong("version is empty");
  if (manifest.task() != linnet::v1::TASK_TRANSLATE &&
      manifest.task() != linnet::v1::TASK_SUMMARIZE) {
    return Wrong("task must be TASK_TRANSLATE or TASK_SUMMARIZE");
  }
  for (const auto& [field, code] :
       {std::pair("source_language_code", manifest.source_language_code()),
        std::pair("target_language_code", manifest.target_language_code())}) {
    if (!IsLanguageCode(code)) {
      return Wrong(field, " \"", code, "\" is no BCP-47 code such as \"de\" or \"pt-BR\"");
    }
  }
  if (manifest.task() == linnet::v1::TASK_SUMMARIZE &&
      manifest.source_language_code() != manifest.target_language_code()) {
    return Wrong("a summariser has one language, this one has \"", manifest.source_language_code(),
                 "\" and \"", manifest.target_language_code(), "\"");
  }
  return absl::OkStatus();
}

absl::Status CheckArchitecture(const linnet::v1::Architecture& architecture) {
  for (const auto& [side, mixers, kernels] :
       {std::tuple("encoder", architecture.encoder_mixers(), architecture.encoder_kernel_sizes()),
        std::tuple("decoder", architecture.decoder_mixers(),
                   architecture.decoder_kernel_sizes())}) {
    if (mixers.empty() || mixers.size() != kernels.size()) {
      return Wrong("architecture has ", mixers.size(), " ", side, "_mixers and ", kernels.size(),
                   " ", side, "_kernel_sizes, there must be one of each per layer");
    }
    for (int i = 0; i < kernels.size(); ++i) {
      // Self-attention and SSRU have no kernel.
      const int min = mixers[i].find("conv") != std::string::npos ? 1 : 0;
      if (kernels[i] < min || kernels[i] > kMaxKernelSize) {
        return Wrong("architecture has ", side, "_kernel_sizes with ", kernels[i], " for \"",
                     mixers[i], "\", it must be between ", min, " and ", kMaxKernelSize);
      }
    }
  }
  if (architecture.has_alignment_layer() &&
      (architecture.alignment_layer() < 0 ||
       architecture.alignment_layer() >= architecture.decoder_mixers_size())) {
    return Wrong("architecture has alignment_layer ", architecture.alignment_layer(),
                 ", it must name one of the ", architecture.decoder_mixers_size(),
                 " decoder layers, from 0");
  }
  if (architecture.model_dimension() < 1 || architecture.feed_forward_dimension() < 1 ||
      architecture.heads() < 1 || architecture.model_dimension() % architecture.heads() != 0) {
    return Wrong("architecture has model_dimension ", architecture.model_dimension(),
                 ", feed_forward_dimension ", architecture.feed_forward_dimension(), " and heads ",
                 architecture.heads(), ", they must be positive and heads divide model_dimension");
  }
  if (architecture.parameters() < 1 || architecture.parameters() > kMaxParameters) {
    return Wrong("architecture has parameters ", architecture.parameters(),
                 ", it must be between 1 and ", kMaxParameters);
  }
  const std::string& weights = architecture.weight_type();
  if (weights != "bfloat16" && weights != "float32" && weights != "int8") {
    return Wrong("architecture has weight_type \"", weights,
                 "\", supported are bfloat16, float32 and int8");
  }
  return absl::OkStatus();
}

absl::Status CheckVocabulary(const linnet::v1::Vocabulary& vocabulary) {
  const std::array ids = {
      std::pair("eos_id", vocabulary.eos_id()), std::pair("pad_id", vocabulary.pad_id()),
      std::pair("unk_id", vocabulary.unk_id()), std::pair("bos_id", vocabulary.bos_id())};
  if (vocabulary.size() < 1 || vocabulary.size() > kMaxVocabulary) {
    return Wrong("vocabulary.size is ", vocabulary.size(), ", it must be between 1 and ",
                 kMaxVocabulary);
  }
  if (vocabulary.has_source_size() &&
      (vocabulary.source_size() < 1 || vocabulary.source_size() > kMaxVocabulary)) {
    return Wrong("vocabulary.source_size is ", vocabulary.source_size(),
                 ", it must be between 1 and ", kMaxVocabulary);
  }
  // The special tokens are in both vocabularies.
  const int smaller = vocabulary.has_source_size()
                          ? std::min(vocabulary.size(), vocabulary.source_size())
                          : vocabulary.size();
  std::set<int> seen;
  for (const auto& [field, id] : ids) {
    if (id < 0 || id >= smaller) {
      return Wrong("vocabulary.", field, " is ", id, ", it must be between 0 and ", smaller - 1);
    }
    // A model without bos sets bos_id to eos_id.
    const bool no_bos = field == ids.back().first && id == vocabulary.eos_id();
    if (!seen.insert(id).second && !no_bos) {
      return Wrong("vocabulary.", field, " is ", id, ", which is another special token's id");
    }
  }
  if (vocabulary.has_start_id() &&
      (vocabulary.start_id() < 0 || vocabulary.start_id() >= vocabulary.size())) {
    return Wrong("vocabulary.start_id is ", vocabulary.start_id(), ", it must be between 0 and ",
                 vocabulary.size() - 1, ", or unset, which means eos_id");
  }
  return absl::OkStatus();
}

absl::Status CheckLimits(const linnet::v1::BundleLimits& limits) {
  for (const auto& [field, value] : {std::pair("max_source_tokens", limits.max_source_tokens()),
                                     std::pair("max_target_tokens", limits.max_target_tokens())}) {
    if (value < 1 || value > kMaxTokens) {
      return Wrong("limits.", field, " is ", value, ", it must be between 1 and ", kMaxTokens);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDefaults(const BundleManifest& manifest) {
  const linnet::v1::DecodingDefaults& defaults = manifest.default_options();
  if (!(defaults.max_target_ratio() >= 0 && defaults.max_target_ratio() <= kMaxRatio)) {
    return Wrong("default_options.max_target_ratio is ", defaults.max_target_ratio(),
                 ", it must be between 0 and ", kMaxRatio);
  }
  SearchLimits limits;
  limits.max_source_tokens = manifest.limits().max_source_tokens();
  limits.max_target_tokens = manifest.limits().max_target_tokens();
  SearchOptions options = DefaultOptions(manifest, limits.max_source_tokens);
  if (defaults.has_max_target_tokens()) options.max_target_tokens = defaults.max_target_tokens();
  if (defaults.has_min_target_tokens()) options.min_target_tokens = defaults.min_target_tokens();
  if (const absl::Status status = CheckOptions(options, limits); !status.ok()) {
    return Wrong("default_options.", std::string(status.message()));
  }
  return absl::OkStatus();
}

// Checks the file names in the manifest, before any file is opened.
absl::Status CheckFileNames(const BundleManifest& manifest) {
  std::set<std::string> listed;
  for (const linnet::v1::BundleFile& file : manifest.files()) {
    const std::string& name = file.name();
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string("/\\\0", 3)) != std::string::npos) {
      return Wrong("files has the name \"", name, "\", it must be a plain name inside the folder");
    }
    if (!listed.insert(name).second) return Wrong("files has \"", name, "\" twice");
  }
  if (manifest.model_file().empty()) return Wrong("model_file is empty");
  for (const auto& [field, name] :
       {std::pair("model_file", manifest.model_file()),
        std::pair("source_tokenizer_file", manifest.source_tokenizer_file()),
        std::pair("target_tokenizer_file", manifest.target_tokenizer_file()),
        std::pair("source_vocabulary_file", manifest.source_vocabulary_file()),
        std::pair("target_vocabulary_file", manifest.target_vocabulary_file()),
        std::pair("shortlist_file", manifest.shortlist_file())}) {
    if (!name.empty() && !listed.contains(name)) {
      return Wrong(field, " is \"", name, "\", which files does not list");
    }
  }
  if (manifest.shortlist_by_default() && manifest.shortlist_file().empty()) {
    return Wrong(
        "shortlist_by_default is true, and shortlist_file is empty: name the file, or leave both "
        "out");
  }
  return absl::OkStatus();
}

// Checks that the manifest names the files that its tokenizers need.
absl::Status CheckTokenizers(const BundleManifest& manifest) {
  if (manifest.source_tokenizer_file().empty() != manifest.target_tokenizer_file().empty()) {
    return Wrong("source_tokenizer_file is \"", manifest.source_tokenizer_file(),
                 "\" and target_tokenizer_file is \"", manifest.target_tokenizer_file(),
                 "\": name both or none");
  }
  // JSON may contain an enum as a number, which protobuf accepts even if it is unknown.
  if (!linnet::v1::SubwordKind_IsValid(manifest.subword_kind())) {
    return Wrong("subword_kind is ", static_cast<int>(manifest.subword_kind()),
                 ", known are SUBWORD_KIND_UNSPECIFIED, a SentencePiece model, "
                 "SUBWORD_KIND_BPE_CODES and SUBWORD_KIND_BYTE_LEVEL_BPE");
  }
  if (!linnet::v1::WordTokenizer_IsValid(manifest.word_tokenizer())) {
    return Wrong("word_tokenizer is ", static_cast<int>(manifest.word_tokenizer()),
                 ", known are WORD_TOKENIZER_UNSPECIFIED, white space, and WORD_TOKENIZER_MOSES");
  }
  const bool bpe = manifest.subword_kind() != linnet::v1::SUBWORD_KIND_UNSPECIFIED;
  for (const auto& [field, name] :
       {std::pair("source_vocabulary_file", manifest.source_vocabulary_file()),
        std::pair("target_vocabulary_file", manifest.target_vocabulary_file())}) {
    if (bpe && name.empty()) {
      return Wrong(field, " is empty, and ", linnet::v1::SubwordKind_Name(manifest.subword_kind()),
                   " has no ids: name a file with one piece a line");
    }
  }
  if (manifest.text_grammar() &&
      manifest.subword_kind() == linnet::v1::SUBWORD_KIND_BYTE_LEVEL_BPE) {
    return Wrong(
        "text_grammar is on with SUBWORD_KIND_BYTE_LEVEL_BPE, whose pieces may hold parts ",
        "of characters: turn it off");
  }
  if (!manifest.placeholders().empty() && !manifest.text_grammar()) {
    return Wrong("placeholders are named, and text_grammar is off: a search would generate them ",
                 "where nothing is copied; turn it on, or leave them out");
  }
  if (!manifest.source_tokenizer_file().empty()) return absl::OkStatus();
  for (const auto& [what, present] :
       {std::pair("source_vocabulary_file is", !manifest.source_vocabulary_file().empty()),
        std::pair("target_vocabulary_file is", !manifest.target_vocabulary_file().empty()),
        std::pair("subword_kind is", bpe),
        std::pair("word_tokenizer is",
                  manifest.word_tokenizer() != linnet::v1::WORD_TOKENIZER_UNSPECIFIED),
        std::pair("capitals_mark is", !manifest.capitals_mark().empty()),
        std::pair("text_grammar is", manifest.text_grammar()),
        std::pair("golden_examples are", !manifest.golden_examples().empty())}) {
    if (present) {
      return Wrong(what,
                   " for text, but there is no tokenizer: name source_tokenizer_file and "
                   "target_tokenizer_file, or leave it out");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGoldenExamples(const BundleManifest& manifest) {
  for (const linnet::v1::GoldenExample& example : manifest.golden_examples()) {
    if (example.source_text().empty()) return Wrong("golden_examples has one without source_text");
  }
  return absl::OkStatus();
}

absl::Status CheckManifest(const BundleManifest& manifest) {
  absl::Status status = CheckIdentity(manifest);
  if (status.ok()) status = CheckArchitecture(manifest.architecture());
  if (status.ok()) status = CheckVocabulary(manifest.vocabulary());
  if (status.ok()) status = CheckLimits(manifest.limits());
  if (status.ok()) status = CheckDefaults(manifest);
  if (status.ok()) status = CheckFileNames(manifest);
  if (status.ok()) status = CheckTokenizers(manifest);
  if (status.ok()) status = CheckGoldenExamples(manifest);
  if (status.ok()) status = CheckLanguages(manifest);
  return status;
}

}  // namespace

int DefaultMaxTargetTokens(const BundleManifest& manifest, int source_tokens) {
  const linnet::v1::DecodingDefaults& defaults = manifest.default_options();
  const int limit = manifest.limits().max_target_tokens();
  // The manifest keeps a ratio of 1.4 as a float, which is a little less: 5 source tokens would
  // lose one of the 7 that its recipe promises. In double nothing overflows for any source.
  const double ratio = std::round(defaults.max_target_ratio() * 1e6) / 1e6;
  const double cap = ratio * source_tokens +
                     (defaults.has_max_target_tokens() ? defaults.max_target_tokens() : limit);
  return static_cast<int>(std::floor(std::min<double>(cap, limit)));
}

SearchOptions DefaultOptions(const BundleManifest& manifest, int source_tokens) {
  SearchOptions options;
  SetOptions(manifest.default_options(), options);
  options.max_target_tokens = DefaultMaxTargetTokens(manifest, source_tokens);
  options.min_target_tokens = std::min(options.min_target_tokens, options.max_target_tokens);
  return options;
}

absl::StatusOr<std::string> ReadManifestBytes(const fs::path& file) {
  absl::StatusOr<std::string> json = ReadFile(file, kMaxManifestBytes);
  if (!json.ok()) return Wrong(json.status().message());
  return json;
}

absl::StatusOr<BundleManifest> ReadManifest(const fs::path& file, const std::string& json) {
  absl::StatusOr<BundleManifest> manifest = ParseManifest(json);
  if (!manifest.ok()) return Wrong(file.string(), " ", std::string(manifest.status().message()));
  if (const absl::Status status = CheckManifest(*manifest); !status.ok()) {
    return Wrong(file.string(), ": ", std::string(status.message()));
  }
  return manifest;
}

}  // namespace linnet::model
