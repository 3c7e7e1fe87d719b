// linnet-decode: decodes JSON lines with a bundle, without the network.
//
// Exit status: 0 all lines were decoded, 1 some were not (their answers give the error), 2 the
// command line is wrong, 3 the bundle or the device cannot be used, 4 the output cannot be written.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "model/runtime/bundle/bundle.h"
#include "model/runtime/bundle/languages.h"
#include "model/runtime/tokenizer/tokenizer.h"
#include "model/torch/torch_engine.h"
#include "proto/decoding_flags.h"
#include "proto/plain_number.h"
#include "proto/standard_files.h"
#include "proto/status_macros.h"
#include "server/decode/decode_stream.h"
#include "server/decode/synthetic.h"
#include "server/models/served_model.h"

namespace linnet::server {
namespace {

// Exit statuses. kUnusable: the bundle, the device or the input.
constexpr int kSomeFailed = 1, kUsage = 2, kUnusable = 3, kOutput = 4;
constexpr size_t kMaxLineBytes = 16 << 20;
// Min rows, for a line with a wider beam than the others.
constexpr int kMinRows = 32;
// Max encoder KV cache; if all sources are long, fewer than --batch are in flight.
constexpr int64_t kEncoderCacheTokens = 16384;

struct Flags {
  std::string bundle;
  std::string device = "cpu";
  std::string compute = "auto";
  std::string search = "auto";
  bool graphs = true;
  bool batch_invariant = false;
  bool time_gemms = true;
  bool print_gemms = false;
  std::string shortlist = "auto";
  int threads = 0;
  int batch = 32;
  linnet::v1::DecodingOptions options;
  bool split = false;
  bool synthetic = false;
  SyntheticLoad load;
};

int Fail(int code, const absl::Status& status) {
  std::cerr << "linnet-decode: " << std::string(status.message()) << "\n";
  return code;
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--bundle", flags.bundle, "Folder of the bundle")->required();
  app.add_option("--device", flags.device, "cpu or cuda")->capture_default_str();
  app.add_option("--compute", flags.compute,
                 "auto, float32, bfloat16, on CUDA float16, on the CPU int8")
      ->capture_default_str();
  app.add_option("--search", flags.search,
                 "auto, host, or device: beside the model; auto is the device on cuda")
      ->capture_default_str();
  app.add_flag("--graphs,!--no-graphs", flags.graphs,
               "Launch a step of the device as a CUDA graph (the default) or kernel by kernel");
  app.add_flag(
      "--time-gemms,!--no-time-gemms", flags.time_gemms,
      "Choose the algorithms of a GPU's gemms by their times at the start (the default) or "
      "leave them to the library; always left with --batch-invariant");
  app.add_flag("--print-gemms", flags.print_gemms,
               "Print the chosen algorithms and their times to standard error");
  app.add_flag(
      "--batch-invariant", flags.batch_invariant,
      "Run all steps with the same number of rows, so that results are bit-identical in any batch");
  // Without a value it is true. CLI11 would take a default_str for that value.
  app.add_option_function<std::string>(
         "--shortlist",
         [&flags](const std::string& value) { flags.shortlist = value.empty() ? "true" : value; },
         "auto, true or false: search only among the tokens that the bundle's shortlist gives for "
         "a source; auto, the default, does if the bundle says so; without a value true")
      ->expected(0, 1);
  app.add_option("--threads", flags.threads, "Threads inside a step; 0 is one per core")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024))
      ->check(CheckPlainNumber);
  app.add_option("--batch", flags.batch, "Sequences in flight")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096))
      ->check(CheckPlainNumber);
  // The options of a line override these, which override the bundle's defaults.
  AddDecodingFlags(app, [&flags] { return &flags.options; });

  app.add_flag("--split", flags.split,
               "Answer a text as the server does: split into sentences, with protected parts and "
               "warnings");
  CLI::Option* synthetic =
      app.add_flag("--synthetic", flags.synthetic,
                   "Measure with random sources, drawn with --seed, instead of reading");
  app.add_option("--source-tokens", flags.load.source_tokens,
                 "Length of each source, including the end token")
      ->needs(synthetic)
      ->check(CLI::Range(1, 1 << 20))
      ->check(CheckPlainNumber);
  app.add_option("--target-tokens", flags.load.target_tokens,
                 "Length of each target, including the end token")
      ->needs(synthetic)
      ->check(CLI::Range(1, 1 << 20))
      ->check(CheckPlainNumber);
  app.add_option("--repeat", flags.load.repeat, "Measured runs, after a warm-up run")
      ->needs(synthetic)
      ->check(CLI::Range(1, 1 << 20))
      ->check(CheckPlainNumber);
  app.add_flag("--step-seconds", flags.load.step_seconds,
               "Report the median time of each step too; the first includes the encoder")
      ->needs(synthetic);
  app.footer(
      "Reads JSON lines from standard input, {\"text\": …} or {\"source_ids\": […], "
      "\"prefix_ids\": […]}, each with\n"
      "an optional \"options\": {\"beam_size\": …}, and prints {\"hypotheses\": […]} or "
      "{\"error\": …} for each, in order.\n"
      "\"constraint_ids\": [[…], …] are phrases of whole words that the target must contain; "
      "\"unmet_constraints\" of an\nanswer are the indices of those that it does not meet. "
      "\"align\": true adds \"attention\", a weight for each token of\nthe target and of the "
      "source.\n"
      "With --split a text is answered by {\"translation\": {\"text\": …, \"score\": …, "
      "\"tokens\": …, \"finish_reason\": …,\n\"warnings\": […]}}; its score is the mean of its "
      "sentences.\n"
      "\"target\": … or \"target_ids\": […] (end token last) is scored instead of searched for.\n"
      "\"source_language\": … and \"target_language\": … choose a pair of a bundle that has "
      "several "
      "[the first], and\n\"style\": \"title\", \"sentence\" or \"paragraph\" a style of its "
      "summaries [the first]; without\nthem source_ids are read as they are.\n"
      "An option of sampling (" +
      model::NamesOfSampling() +
      ") selects it: beam_size targets are "
      "drawn (unset: n_best), and\nthe n_best with the highest scores are printed. To sample from "
      "all tokens set a seed.\n\n"
      "Exit status: 0, 1 if some lines have an error, 2 for wrong flags, 3 for a bundle, a device "
      "or an input that\ncannot be used, 4 if the output cannot be written.");
}

// Refuses flags that an engine would refuse by names that this program does not have.
absl::Status CheckSizes(const model::Bundle& bundle, const Flags& flags, int beam_size) {
  const int64_t rows = int64_t{flags.batch} * beam_size;
  if (rows > model::TorchEngineOptions::kMaxRows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--batch ", flags.batch, " with a beam of ", beam_size, " needs ", rows, " rows, at most ",
        model::TorchEngineOptions::kMaxRows, " are accepted: lower one of them"));
  }
  const int max_source_tokens = bundle.manifest.limits().max_source_tokens();
  if (flags.synthetic && flags.load.source_tokens > max_source_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("--source-tokens is ", flags.load.source_tokens,
                                                   ", this model reads at most ",
                                                   max_source_tokens));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<model::Engine>> MakeEngine(const model::Bundle& bundle,
                                                          const Flags& flags, int beam_size,
                                                          model::TorchEngineOptions options) {
  const int64_t longest = bundle.manifest.limits().max_source_tokens();
  options.threads = flags.threads;
  options.rows = std::max(kMinRows, flags.batch * beam_size);
  options.encoder_cache_tokens = flags.synthetic
                                     ? flags.batch * (flags.load.source_tokens + int64_t{16})
                                     : std::min(flags.batch * longest, kEncoderCacheTokens);
  options.encoder_cache_tokens = std::max(options.encoder_cache_tokens, longest);
  options.mask_eos = flags.synthetic;
  return MakeTorchEngine(bundle, options);
}

int Measure(model::Engine& engine, const SyntheticLoad& load) {
  const absl::StatusOr<std::string> line = MeasureSynthetic(engine, load);
  if (!line.ok())
    return Fail(line.status().code() == absl::StatusCode::kInvalidArgument ? kUsage : kSomeFailed,
                line.status());
  if (!(std::cout << *line << std::endl))
    return Fail(kOutput, absl::DataLossError("the output could not be written"));
  return 0;
}

absl::Status LoadTokenizers(ServedModel& model) {
  const model::Bundle& bundle = model.bundle;
  if (!bundle.has_tokenizers()) return absl::OkStatus();
  const model::SpecialTokens special = bundle.special_tokens();
  ASSIGN_OR_RETURN(model.source_tokenizer,
                   model::Tokenizer::Load(bundle.source_tokenizer(), special));
  ASSIGN_OR_RETURN(model.target_tokenizer,
                   model::Tokenizer::Load(bundle.target_tokenizer(), special));
  return absl::OkStatus();
}

int DecodeLines(const std::shared_ptr<ServedModel>& model, model::Engine& engine,
                const Flags& flags) {
  if (absl::Status status = LoadTokenizers(*model); !status.ok()) return Fail(kUnusable, status);
  LineReader input(STDIN_FILENO, kMaxLineBytes);
  const bool split = flags.split && model->bundle.has_tokenizers();
  DecodeStream stream(model, engine, flags.options, flags.batch, split);
  const absl::StatusOr<bool> all_decoded = stream.Run(input, stdout);
  if (!input.status().ok()) return Fail(kUnusable, input.status());
  if (!all_decoded.ok()) return Fail(kOutput, all_decoded.status());
  return *all_decoded ? 0 : kSomeFailed;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Decodes JSON lines with a Linnet bundle.");
  app.set_version_flag("--version", "linnet-decode " LINNET_VERSION);
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (flags.synthetic &&
      (flags.options.has_min_target_tokens() || flags.options.has_max_target_tokens())) {
    return Fail(kUsage, absl::InvalidArgumentError(
                            "--synthetic makes targets of one length: set --target-tokens in place "
                            "of --min-target-tokens and --max-target-tokens"));
  }
  if (flags.synthetic && flags.options.has_seed()) {
    flags.load.seed = flags.options.seed();
    flags.options.clear_seed();
  }
  const absl::StatusOr<model::Device> device = model::ParseDevice(flags.device);
  if (!device.ok()) return Fail(kUsage, device.status());
  const absl::StatusOr<model::ComputeType> compute = model::ParseComputeType(flags.compute);
  if (!compute.ok()) return Fail(kUsage, compute.status());
  const absl::StatusOr<model::SearchPlace> search = model::ParseSearchPlace(flags.search);
  if (!search.ok()) return Fail(kUsage, search.status());
  const absl::StatusOr<model::ShortlistUse> shortlist = model::ParseShortlistUse(flags.shortlist);
  if (!shortlist.ok()) return Fail(kUsage, shortlist.status());

  absl::StatusOr<model::Bundle> read = model::ReadBundle(flags.bundle);
  if (!read.ok()) return Fail(kUnusable, read.status());
  const auto model = std::make_shared<ServedModel>();
  model->bundle = *std::move(read);
  model->languages = model::LanguagePairs(model->bundle.manifest);
  const model::Bundle& bundle = model->bundle;
  // Flags with which no line could be decoded are reported at once.
  model::SearchLimits limits;
  limits.max_target_tokens = bundle.manifest.limits().max_target_tokens();
  const auto options =
      model::ApplyOverrides(bundle.default_options(bundle.manifest.limits().max_source_tokens()),
                            flags.options, limits.max_target_tokens);
  if (absl::Status status = model::CheckOptions(options, limits); !status.ok())
    return Fail(kUsage, status);
  if (absl::Status status = CheckSizes(bundle, flags, options.beam_size); !status.ok())
    return Fail(kUsage, status);

  auto engine = MakeEngine(bundle, flags, options.beam_size,
                           {.device = *device,
                            .compute = *compute,
                            .shortlist = *shortlist,
                            .search = *search,
                            .graphs = flags.graphs,
                            .time_gemms = flags.time_gemms,
                            .batch_invariant = flags.batch_invariant});
  if (!engine.ok()) {
    return Fail(absl::IsInvalidArgument(engine.status()) ? kUsage : kUnusable, engine.status());
  }
  if (flags.print_gemms) {
    for (const std::string& line : (*engine)->info().gemms) std::cerr << line << "\n";
  }
  if (!flags.synthetic) return DecodeLines(model, **engine, flags);
  flags.load.batch = flags.batch;
  flags.load.options = options;
  return Measure(**engine, flags.load);
}

}  // namespace
}  // namespace linnet::server

int main(int argc, char** argv) {
  linnet::OpenStandardFiles();
  return linnet::server::Main(argc, argv);
}
