// Gemms by cuBLASLt with a chosen algorithm (gemm_choice.h).
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/ops/checks.h"
#include "model/ops/gemm_choice.h"
#include "model/ops/linear.h"

namespace linnet::ops {
namespace {

constexpr int kAsked = 12;  // candidates asked of cuBLASLt
// The first of them are also tried with sums split among so many blocks.
constexpr int kSplitCandidates = 3;
constexpr int32_t kSplits[] = {2, 4, 8};
constexpr size_t kMaxWorkspaceBytes = size_t{32} << 20;
constexpr uint32_t kAlignment = 16;  // bytes, of all matrices

cudaDataType_t CudaType(FloatType type) {
  switch (type) {
    case FloatType::kFloat32:
      return CUDA_R_32F;
    case FloatType::kBFloat16:
      return CUDA_R_16BF;
    case FloatType::kFloat16:
      return CUDA_R_16F;
  }
  TORCH_CHECK(false, "unknown type of a gemm");
}

struct Operands {
  const void *x, *weight, *bias;
  void* y;
};

// cuBLASLt's matrices are stored by columns: it computes y^T = weight x^T, where the stored weight
// is read transposed.
class Problem {
 public:
  Problem(const GemmShape& shape, const void* bias) {
    const cudaDataType_t type = CudaType(shape.type);
    const cudaDataType_t result = shape.float32_result ? CUDA_R_32F : type;
    bool fits = cublasLtMatmulDescInit(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
                    CUBLAS_STATUS_SUCCESS &&
                cublasLtMatrixLayoutInit(&weight, type, shape.inputs, shape.outputs,
                                         shape.inputs) == CUBLAS_STATUS_SUCCESS &&
                cublasLtMatrixLayoutInit(&x, type, shape.inputs, shape.rows, shape.inputs) ==
                    CUBLAS_STATUS_SUCCESS &&
                cublasLtMatrixLayoutInit(&y, result, shape.outputs, shape.rows, shape.outputs) ==
                    CUBLAS_STATUS_SUCCESS;
    fits = fits && Set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    if (shape.bias) {
      fits = fits && Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias) &&
             Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, result);
    }
    const cublasLtEpilogue_t epilogue = shape.bias && shape.relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                        : shape.bias             ? CUBLASLT_EPILOGUE_BIAS
                                        : shape.relu             ? CUBLASLT_EPILOGUE_RELU
                                                                 : CUBLASLT_EPILOGUE_DEFAULT;
    valid = fits && Set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  }

  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t weight, x, y;
  bool valid = false;

 private:
  template <class T>
  bool Set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return cublasLtMatmulDescSetAttribute(&operation, attribute, &value, sizeof(value)) ==
           CUBLAS_STATUS_SUCCESS;
  }
};

bool Run(const GemmShape& shape, const GemmAlgorithm& algorithm, const Operands& operands) {
  Problem problem(shape, operands.bias);
  if (!problem.valid) return false;
  cublasLtMatmulAlgo_t own;
  static_assert(sizeof(own) == sizeof(algorithm.words));
  std::memcpy(&own, algorithm.words.data(), sizeof(own));
  // It comes from the allocator's pool, where it is free again for what follows on this stream.
  const at::Tensor workspace = at::empty({static_cast<int64_t>(algorithm.workspace_bytes)},
                                         at::TensorOptions(at::kCUDA).dtype(at::kByte));
  const float one = 1, zero = 0;
  return cublasLtMatmul(at::cuda::getCurrentCUDABlasLtHandle(), &problem.operation, &one,
                        operands.weight, &problem.weight, operands.x, &problem.x, &zero, operands.y,
                        &problem.y, operands.y, &problem.y, &own, workspace.mutable_data_ptr(),
                        algorithm.workspace_bytes,
                        at::cuda::getCurrentCUDAStream()) == CUBLAS_STATUS_SUCCESS;
}

template <class T>
T ReadConfig(const cublasLtMatmulAlgo_t& algorithm,
             cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value = {};
  size_t written = 0;
  cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  return value;
}

GemmAlgorithm Named(const cublasLtMatmulHeuristicResult_t& result) {
  GemmAlgorithm made;
  std::memcpy(made.words.data(), &result.algo, sizeof(result.algo));
  made.workspace_bytes = result.workspaceSize;
  made.name =
      "algorithm " + std::to_string(ReadConfig<int32_t>(result.algo, CUBLASLT_ALGO_CONFIG_ID)) +
      " tile " + std::to_string(ReadConfig<uint32_t>(result.algo, CUBLASLT_ALGO_CONFIG_TILE_ID)) +
      " stages " +
      std::to_string(ReadConfig<uint32_t>(result.algo, CUBLASLT_ALGO_CONFIG_STAGES_ID)) +
      " split " + std::to_string(ReadConfig<int32_t>(result.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
  return made;
}

class CublasLt final : public GemmLibrary {
 public:
  explicit CublasLt(const Operands& operands) : operands_(operands) {}

  std::vector<GemmAlgorithm> Candidates(const GemmShape& shape) override {
    Problem problem(shape, operands_.bias);
    cublasLtMatmulPreferenceOpaque_t preference;
    if (!problem.valid || cublasLtMatmulPreferenceInit(&preference) != CUBLAS_STATUS_SUCCESS) {
      return {};
    }
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      return cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)) ==
             CUBLAS_STATUS_SUCCESS;
    };
    // Split sums are added in float32.
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    if (!set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspaceBytes) ||
        !set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions) ||
        !set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kAlignment) ||
        !set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kAlignment) ||
        !set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kAlignment) ||
        !set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kAlignment)) {
      return {};
    }
    std::array<cublasLtMatmulHeuristicResult_t, kAsked> results;
    int count = 0;
    if (cublasLtMatmulAlgoGetHeuristic(at::cuda::getCurrentCUDABlasLtHandle(), &problem.operation,
                                       &problem.weight, &problem.x, &problem.y, &problem.y,
                                       &preference, kAsked, results.data(),
                                       &count) != CUBLAS_STATUS_SUCCESS) {
      return {};
    }
    std::vector<GemmAlgorithm> candidates;
    for (int i = 0; i < count; ++i) {
      if (results[i].state == CUBLAS_STATUS_SUCCESS) candidates.push_back(Named(results[i]));
    }
    for (int i = 0; i < std::min(count, kSplitCandidates); ++i) {
      if (results[i].state == CUBLAS_STATUS_SUCCESS)
        AddSplits(problem, results[i].algo, candidates);
    }
    return candidates;
  }

  // Where there is no memory to time an algorithm, it does not run.
  std::optional<double> Seconds(const GemmShape& shape, const GemmAlgorithm& algorithm,
                                int runs) override {
    try {
      return Median(shape, algorithm, runs);
    } catch (const c10::OutOfMemoryError&) {
      return std::nullopt;
    }
  }

 private:
  // Before each run the device's cache is overwritten, as the other layers' weights overwrite it
  // between two steps.
  std::optional<double> Median(const GemmShape& shape, const GemmAlgorithm& algorithm, int runs) {
    if (!flush_.defined()) {
      flush_ = at::empty({2 * int64_t{at::cuda::getCurrentDeviceProperties()->l2CacheSize}},
                         at::TensorOptions(at::kCUDA).dtype(at::kByte));
    }
    const auto stream = at::cuda::getCurrentCUDAStream();
    std::vector<Event> events(2 * runs);
    if (!Run(shape, algorithm, operands_)) return std::nullopt;  // initialises the kernel
    for (int run = 0; run < runs; ++run) {
      flush_.zero_();
      C10_CUDA_CHECK(cudaEventRecord(events[2 * run].get(), stream));
      if (!Run(shape, algorithm, operands_)) return std::nullopt;
      C10_CUDA_CHECK(cudaEventRecord(events[2 * run + 1].get(), stream));
    }
    C10_CUDA_CHECK(cudaStreamSynchronize(stream));
    std::vector<float> milliseconds(runs);
    for (int run = 0; run < runs; ++run) {
      C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds[run], events[2 * run].get(),
                                          events[2 * run + 1].get()));
    }
    std::sort(milliseconds.begin(), milliseconds.end());
    return milliseconds[runs / 2] / 1e3;
  }

  class Event {
   public:
    Event() { C10_CUDA_CHECK(cudaEventCreate(&event_)); }
    ~Event() { cudaEventDestroy(event_); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    cudaEvent_t get() const { return event_; }

   private:
    cudaEvent_t event_;
  };

  static void AddSplits(Problem& problem, const cublasLtMatmulAlgo_t& base,
                        std::vector<GemmAlgorithm>& candidates) {
    const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    for (const int32_t split : kSplits) {
      cublasLtMatmulAlgo_t algorithm = base;
      cublasLtMatmulHeuristicResult_t checked;
      const bool runs =
          cublasLtMatmulAlgoConfigSetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &split,
                                               sizeof(split)) == CUBLAS_STATUS_SUCCESS &&
          cublasLtMatmulAlgoConfigSetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                               &reduction,
                                               sizeof(reduction)) == CUBLAS_STATUS_SUCCESS &&
          cublasLtMatmulAlgoCheck(at::cuda::getCurrentCUDABlasLtHandle(), &problem.operation,
                                  &problem.weight, &problem.x, &problem.y, &problem.y, &algorithm,
                                  &checked) == CUBLAS_STATUS_SUCCESS &&
          checked.workspaceSize <= kMaxWorkspaceBytes;
      if (!runs) continue;
      checked.algo = algorithm;
      const GemmAlgorithm named = Named(checked);
      const bool known =
          std::any_of(candidates.begin(), candidates.end(),
                      [&](const GemmAlgorithm& other) { return other.words == named.words; });
      if (!known) candidates.push_back(named);
    }
  }

  Operands operands_;
  at::Tensor flush_;
};

bool Aligned(const at::Tensor& matrix) {
  return reinterpret_cast<uintptr_t>(matrix.const_data_ptr()) % kAlignment == 0 &&
         matrix.size(-1) * matrix.element_size() % kAlignment == 0;
}

std::optional<at::Tensor> ChosenLinear(const at::Tensor& x, const at::Tensor& weight,
                                       const std::optional<at::Tensor>& bias, bool relu,
                                       bool float32_result) {
  const GemmMode mode = GemmScope::current();
  if (mode == GemmMode::kLibrary || x.dim() != 2 || x.numel() == 0 || !x.is_contiguous() ||
      !weight.is_contiguous() || (bias && !bias->is_contiguous()) || !Aligned(x) ||
      !Aligned(weight) || at::globalContext().allowTF32CuBLAS()) {
    return std::nullopt;
  }
  const GemmShape shape = {.type = FloatTypeOf(x),
                           .float32_result = float32_result,
                           .bias = bias.has_value(),
                           .relu = relu,
                           .rows = x.size(0),
                           .outputs = weight.size(0),
                           .inputs = x.size(1)};
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor y = at::empty({shape.rows, shape.outputs},
                           x.options().dtype(float32_result ? at::kFloat : x.scalar_type()));
  if (!Aligned(y)) return std::nullopt;
  const Operands operands = {x.const_data_ptr(), weight.const_data_ptr(),
                             bias ? bias->const_data_ptr() : nullptr, y.mutable_data_ptr()};
  CublasLt library(operands);
  const GemmChoice* choice = mode == GemmMode::kChoose
                                 ? GemmTable::OfProcess().FindOrChoose(shape, library)
                                 : GemmTable::OfProcess().Find(shape);
  if (choice == nullptr || !Run(shape, choice->algorithm, operands)) return std::nullopt;
  return y;
}

[[maybe_unused]] const bool kLinearRegistered = (SetChosenLinear(ChosenLinear), true);

}  // namespace
}  // namespace linnet::ops
