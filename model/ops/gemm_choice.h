#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "model/ops/params.h"

// The algorithms of a GPU library's gemms, chosen by their times.
//
// The library predicts which of its algorithms is the fastest for a shape. At the few rows of a
// decoder step the prediction is often wrong, because a gemm fills the device only if its sums are
// split among blocks. So the device decoder times the candidates for each shape of a step before it
// records the step (GemmScope), and later steps use the fastest. The table lives as long as the
// process: an engine that is loaded again finds the choices of the one before.
//
// Sums in another order differ in their last bits, and times differ between runs, so two processes
// may choose differently. Engines with batch invariance use no table.
namespace linnet::ops {

// y = x weight^T + bias, perhaps with a relu: x [rows, inputs], weight [outputs, inputs].
struct GemmShape {
  FloatType type;       // of x and weight
  bool float32_result;  // y and bias are float32, else of `type`
  bool bias, relu;
  int64_t rows, outputs, inputs;

  auto operator<=>(const GemmShape&) const = default;
};

struct GemmAlgorithm {
  std::string name;
  std::array<uint64_t, 8> words;  // cublasLtMatmulAlgo_t
  size_t workspace_bytes;
};

// The candidates of a library and their times: cuBLASLt on a GPU, a fake in tests.
class GemmLibrary {
 public:
  virtual ~GemmLibrary() = default;
  // In the library's own order; it would take the first. May be empty.
  virtual std::vector<GemmAlgorithm> Candidates(const GemmShape& shape) = 0;
  // The median time of some runs. Returns nothing if the algorithm does not run.
  virtual std::optional<double> Seconds(const GemmShape& shape, const GemmAlgorithm& algorithm,
                                        int runs) = 0;
};

struct GemmChoice {
  GemmAlgorithm algorithm;
  int candidate, candidates;  // its index, and their number
  double seconds;
  std::optional<double> first_seconds;  // of candidate 0, if it runs
};

// Candidates within this part of the shortest time are equal, and the earliest of them is chosen:
// times of microseconds repeat to about 2 %.
constexpr double kGemmTie = 0.03;

// Candidates that are timed again, with kGemmRuns runs each, after one run of every candidate; the
// first candidate always is.
constexpr int kGemmFinalists = 4;
constexpr int kGemmRuns = 5;

// Times the candidates. Returns nothing if none runs: then the library keeps its own choice.
std::optional<GemmChoice> ChooseGemm(const GemmShape& shape, GemmLibrary& library);

// Thread-safe. A choice is never changed or removed.
class GemmTable {
 public:
  // The table of the process.
  static GemmTable& OfProcess();

  // Returns null if nothing was chosen for the shape.
  const GemmChoice* Find(const GemmShape& shape) const;
  // Find, after ChooseGemm if the shape is new. Shapes without a choice are not tried again.
  const GemmChoice* FindOrChoose(const GemmShape& shape, GemmLibrary& library);
  // A line for each shape, in ascending order.
  std::vector<std::string> Describe() const;

 private:
  std::mutex choosing_;       // held while candidates are timed, so that one thread does
  mutable std::mutex mutex_;  // of choices_; not held meanwhile: other engines look theirs up
  std::map<GemmShape, std::optional<GemmChoice>> choices_;
};

// A GemmScope sets what the gemms of its thread do; without one that is kLibrary.
enum class GemmMode {
  kLibrary,  // the library's own choice
  kTable,    // the table's, or the library's for shapes without one
  kChoose,   // as kTable, but new shapes are timed first, which waits for the device
};

class GemmScope {
 public:
  explicit GemmScope(GemmMode mode);
  ~GemmScope();
  GemmScope(const GemmScope&) = delete;
  GemmScope& operator=(const GemmScope&) = delete;

  static GemmMode current();

 private:
  GemmMode before_;
};

}  // namespace linnet::ops
