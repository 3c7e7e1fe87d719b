#include "model/ops/gemm_choice.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace linnet::ops {
namespace {

thread_local GemmMode mode_of_thread = GemmMode::kLibrary;

const char* TypeName(FloatType type) {
  switch (type) {
    case FloatType::kFloat32:
      return "float32";
    case FloatType::kBFloat16:
      return "bfloat16";
    case FloatType::kFloat16:
      return "float16";
  }
  return "unknown";
}

std::string Microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f us", seconds * 1e6);
  return text;
}

std::string Line(const GemmShape& shape, const std::optional<GemmChoice>& choice) {
  std::string line = TypeName(shape.type);
  if (shape.float32_result && shape.type != FloatType::kFloat32) line += " to float32";
  line += " " + std::to_string(shape.rows) + " x " + std::to_string(shape.inputs) + " x " +
          std::to_string(shape.outputs);
  if (shape.bias) line += " bias";
  if (shape.relu) line += " relu";
  if (!choice) return line + ": the library's own, no candidate runs";
  line += ": candidate " + std::to_string(choice->candidate + 1) + " of " +
          std::to_string(choice->candidates) + " (" + choice->algorithm.name + "), " +
          Microseconds(choice->seconds);
  if (choice->first_seconds && choice->candidate > 0) {
    line += "; the first takes " + Microseconds(*choice->first_seconds);
  }
  return line;
}

}  // namespace

std::optional<GemmChoice> ChooseGemm(const GemmShape& shape, GemmLibrary& library) {
  std::vector<GemmAlgorithm> candidates = library.Candidates(shape);
  std::vector<std::pair<double, int>> order;  // times of one run, with their candidates
  for (int i = 0; i < std::ssize(candidates); ++i) {
    if (const auto time = library.Seconds(shape, candidates[i], 1)) order.emplace_back(*time, i);
  }
  std::sort(order.begin(), order.end());
  std::map<int, double> times;  // of the finalists, in the library's order
  std::optional<double> shortest;
  for (int rank = 0; rank < std::ssize(order); ++rank) {
    const int i = order[rank].second;
    if (rank >= kGemmFinalists && i != 0) continue;
    const auto time = library.Seconds(shape, candidates[i], kGemmRuns);
    if (!time) continue;
    times[i] = *time;
    if (!shortest || *time < *shortest) shortest = time;
  }
  for (const auto& [i, time] : times) {
    if (time > *shortest * (1 + kGemmTie)) continue;
    const auto first = times.find(0);
    return GemmChoice{std::move(candidates[i]), i, static_cast<int>(candidates.size()), time,
                      first == times.end() ? std::nullopt : std::optional(first->second)};
  }
  return std::nullopt;
}

GemmTable& GemmTable::OfProcess() {
  static auto* const table = new GemmTable;  // threads may use it until the process ends
  return *table;
}

const GemmChoice* GemmTable::Find(const GemmShape& shape) const {
  const std::lock_guard lock(mutex_);
  const auto found = choices_.find(shape);
  return found == choices_.end() || !found->second ? nullptr : &*found->second;
}

const GemmChoice* GemmTable::FindOrChoose(const GemmShape& shape, GemmLibrary& library) {
  const std::lock_guard one_thread(choosing_);
  {
    const std::lock_guard lock(mutex_);
    const auto found = choices_.find(shape);
    if (found != choices_.end()) return found->second ? &*found->second : nullptr;
  }
  std::optional<GemmChoice> choice = ChooseGemm(shape, library);
  const std::lock_guard lock(mutex_);
  const auto added = choices_.emplace(shape, std::move(choice)).first;
  return added->second ? &*added->second : nullptr;
}

std::vector<std::string> GemmTable::Describe() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& [shape, choice] : choices_) lines.push_back(Line(shape, choice));
  return lines;
}

GemmScope::GemmScope(GemmMode mode) : before_(std::exchange(mode_of_thread, mode)) {}

GemmScope::~GemmScope() { mode_of_thread = before_; }

GemmMode GemmScope::current() { return mode_of_thread; }

}  // namespace linnet::ops
