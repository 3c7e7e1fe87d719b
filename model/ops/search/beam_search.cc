#include "model/ops/search/beam_search.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <tuple>

#include "model/ops/checks.h"
#include "model/ops/search/beam_body.h"

namespace linnet::ops {
namespace {

constexpr const char* kTableNames[] = {"tables[0] (tokens)",       "tables[1] (sums)",
                                       "tables[2] (backpointers)", "tables[3] (history)",
                                       "tables[4] (counts)",       "tables[5] (states)"};

BeamTables Unpack(const char* op, const at::Tensor& plan, at::TensorList tables) {
  TORCH_CHECK(tables.size() == 6, op, ": ", tables.size(), " tables were given, it needs 6");
  constexpr int64_t kRanks[] = {1, 1, 2, 3, 2, 1};
  for (size_t i = 0; i < 6; ++i) {
    const NamedTensor table = {kTableNames[i], tables[i]};
    CheckRank(op, table, kRanks[i], "(beam_search.h)");
    CheckContiguous(op, table, "it is changed in place");
    TORCH_CHECK(tables[i].scalar_type() == (i == 1 ? at::kFloat : at::kInt), op, ": ",
                kTableNames[i], " is ", tables[i].scalar_type());
    TORCH_CHECK(tables[i].device() == plan.device(), op, ": ", kTableNames[i], " is on ",
                tables[i].device(), ", plan on ", plan.device(), "; both need one device");
  }
  const int64_t slots = tables[0].size(0);
  CheckSize(op, {kTableNames[1], tables[1]}, 0, "S", slots, "tokens");
  CheckSize(op, {kTableNames[2], tables[2]}, 0, "S", slots, "tokens");
  CheckSize(op, {kTableNames[3], tables[3]}, 0, "halves", 2, "the contract");
  CheckSize(op, {kTableNames[3], tables[3]}, 1, "S", slots, "tokens");
  CheckSize(op, {kTableNames[4], tables[4]}, 0, "S", slots, "tokens");
  CheckSize(op, {kTableNames[4], tables[4]}, 1, "counts", 2, "the contract");
  CheckSize(op, {kTableNames[5], tables[5]}, 0, "S", slots, "tokens");
  TORCH_CHECK(tables[3].size(2) <= kMaxHistory, op, ": ", kTableNames[3], " has ",
              tables[3].size(2), " entries per slot, it may have ", kMaxHistory);
  return {.tokens = tables[0].mutable_data_ptr<int32_t>(),
          .sums = tables[1].mutable_data_ptr<float>(),
          .backpointers = tables[2].mutable_data_ptr<int32_t>(),
          .history = tables[3].mutable_data_ptr<int32_t>(),
          .counts = tables[4].mutable_data_ptr<int32_t>(),
          .states = tables[5].mutable_data_ptr<int32_t>(),
          .slots = slots,
          .reach = tables[2].size(1),
          .longest = tables[3].size(2)};
}

void CheckInRange(const char* op, int64_t number, const char* what, int64_t value, int64_t min,
                  int64_t max) {
  TORCH_CHECK(min <= value && value <= max, op, ": plan of search ", number, ": ", what, " is ",
              value, ", it must be between ", min, " and ", max);
}

// Checks the values of a plan on the CPU. `vocabulary` is -1 if it is not known.
void CheckPlan(const char* op, const at::Tensor& plan, const BeamTables& tables,
               int64_t vocabulary) {
  const int64_t rows = plan.size(0);
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t* words = plan.const_data_ptr<int32_t>() + r * plan.size(1);
    const BeamPlan& own = *reinterpret_cast<const BeamPlan*>(words);
    CheckInRange(op, r, "search", own.search, -1, rows - 1);
    CheckInRange(op, r, "beam", own.beam, 0, kMaxBeam);
    if (own.search >= 0) {
      const BeamPlan& search = *reinterpret_cast<const BeamPlan*>(plan.const_data_ptr<int32_t>() +
                                                                  own.search * plan.size(1));
      CheckInRange(op, own.search, "index of a row in the beam", r - search.first_row, 0,
                   search.beam - 1);
    }
    if (own.beam == 0) continue;
    CheckInRange(op, r, "first_row", own.first_row, 0, rows - own.beam);
    CheckInRange(op, r, "position", own.position, 0,
                 ForbidsRepeats(own) ? tables.longest - 2 : (int64_t{1} << 30));
    CheckInRange(op, r, "ngram", own.ngram, 0, kMaxHistory);
    CheckInRange(op, r, "repeats", own.repeats, 0, kMaxHistory);
    if (vocabulary >= 0) CheckInRange(op, r, "forced", own.forced, -1, vocabulary - 1);
    for (int i = 0; i < own.beam; ++i) {
      CheckInRange(op, r, "a slot", own.slots[i], 0, tables.slots - 1);
    }
    TORCH_CHECK(own.temperature > 0, op, ": plan of search ", r, ": temperature is ",
                own.temperature, ", it must be above 0");
  }
}

void CheckPlanTensor(const char* op, const at::Tensor& plan, int64_t min_width) {
  CheckRank(op, {"plan", plan}, 2, "[R, words]");
  CheckContiguous(op, {"plan", plan}, "its rows are structs");
  TORCH_CHECK(plan.scalar_type() == at::kInt, op, ": plan is ", plan.scalar_type(),
              ", needs int32");
  TORCH_CHECK(plan.size(1) >= min_width, op, ": plan has ", plan.size(1), " words a row, needs ",
              min_width);
}

BeamSpecialTokens Special(const char* op, at::IntArrayRef special) {
  TORCH_CHECK(special.size() == 4, op, ": special has ", special.size(),
              " tokens, needs 4: start, pad, eos, unk");
  const auto token = [&](int i) { return static_cast<int32_t>(special[i]); };
  return {token(0), token(1), token(2), token(3)};
}

BeamGrammar UnpackGrammar(const char* op, const at::Tensor& logits, at::TensorList grammar) {
  if (grammar.empty()) return {};
  TORCH_CHECK(grammar.size() == 3, op, ": grammar has ", grammar.size(),
              " tensors, needs none or 3: classes, transitions, tails");
  const NamedTensor classes = {"grammar[0] (classes)", grammar[0]};
  const NamedTensor transitions = {"grammar[1] (transitions)", grammar[1]};
  const NamedTensor tails = {"grammar[2] (tails)", grammar[2]};
  CheckRank(op, classes, 1, "[V]");
  CheckRank(op, transitions, 2, "[states, classes]");
  CheckRank(op, tails, 1, "[states]");
  CheckSize(op, classes, 0, "V", logits.size(1), "logits");
  CheckSize(op, tails, 0, "states", grammar[1].size(0), "transitions");
  for (const NamedTensor& part : {classes, transitions, tails}) {
    CheckContiguous(op, part, "the engine made it so");
    TORCH_CHECK(part.tensor.device() == logits.device(), op, ": ", part.name, " is on ",
                part.tensor.device(), ", logits on ", logits.device(), "; both need one device");
  }
  TORCH_CHECK(grammar[0].scalar_type() == at::kByte, op, ": classes are ", grammar[0].scalar_type(),
              ", need uint8");
  TORCH_CHECK(grammar[1].scalar_type() == at::kInt && grammar[2].scalar_type() == at::kInt, op,
              ": transitions are ", grammar[1].scalar_type(), " and tails ",
              grammar[2].scalar_type(), ", both need int32");
  return {.classes = grammar[0].const_data_ptr<uint8_t>(),
          .transitions = grammar[1].const_data_ptr<int32_t>(),
          .tails = grammar[2].const_data_ptr<int32_t>(),
          .class_count = static_cast<int32_t>(grammar[1].size(1))};
}

using InputTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

InputTensors BeamInputsCpuOp(const at::Tensor& plan, at::TensorList tables, at::IntArrayRef special,
                             int64_t row_blocks) {
  const StepRows rows = BeamInputs(plan, tables, special, row_blocks, BeamInputsCpu);
  return {rows.tokens, rows.positions, rows.backpointers, rows.blocks, rows.source_lengths};
}

void BeamStepCpuOp(const at::Tensor& plan, const at::Tensor& logits, const at::Tensor& backpointers,
                   at::TensorList tables, at::IntArrayRef special, at::TensorList grammar,
                   at::Tensor& record) {
  TORCH_CHECK(logits.scalar_type() == at::kFloat, "beam_step: logits are ", logits.scalar_type(),
              ", on the CPU they must be float32");
  BeamStep(plan, logits, backpointers, tables, special, grammar, record, BeamStepCpu);
}

}  // namespace

StepRows BeamInputs(const at::Tensor& plan, at::TensorList tables, at::IntArrayRef special,
                    int64_t row_blocks, BeamInputsKernel kernel) {
  constexpr char kOp[] = "beam_inputs";
  TORCH_CHECK(row_blocks >= 1, kOp, ": row_blocks is ", row_blocks, ", it must be at least 1");
  CheckPlanTensor(kOp, plan, kPlanWords + row_blocks);
  const BeamTables unpacked = Unpack(kOp, plan, tables);
  if (plan.is_cpu()) CheckPlan(kOp, plan, unpacked, -1);
  const int64_t rows = plan.size(0);
  const auto ints = plan.options();
  StepRows out = {.tokens = at::empty({rows}, ints.dtype(at::kLong)),
                  .positions = at::empty({rows}, ints),
                  .backpointers = at::empty({rows, unpacked.reach}, ints),
                  .blocks = at::empty({rows, row_blocks}, ints),
                  .source_lengths = at::empty({rows}, ints)};
  if (rows == 0) return out;
  kernel({.plan = plan.const_data_ptr<int32_t>(),
          .tables = unpacked,
          .special = Special(kOp, special),
          .tokens = out.tokens.mutable_data_ptr<int64_t>(),
          .positions = out.positions.mutable_data_ptr<int32_t>(),
          .backpointers = out.backpointers.mutable_data_ptr<int32_t>(),
          .blocks = out.blocks.mutable_data_ptr<int32_t>(),
          .source_lengths = out.source_lengths.mutable_data_ptr<int32_t>(),
          .rows = rows,
          .plan_stride = plan.size(1),
          .row_blocks = row_blocks});
  return out;
}

void BeamStep(const at::Tensor& plan, const at::Tensor& logits, const at::Tensor& backpointers,
              at::TensorList tables, at::IntArrayRef special, at::TensorList grammar,
              at::Tensor& record, BeamStepKernel kernel) {
  constexpr char kOp[] = "beam_step";
  CheckPlanTensor(kOp, plan, kPlanWords);
  const BeamTables unpacked = Unpack(kOp, plan, tables);
  const int64_t rows = plan.size(0);
  CheckFloats(kOp, {{"logits", logits}});
  TORCH_CHECK(logits.device() == plan.device(), kOp, ": logits are on ", logits.device(),
              " and plan is on ", plan.device(), "; both need one device");
  CheckRank(kOp, {"logits", logits}, 2, "[R, V]");
  CheckSize(kOp, {"logits", logits}, 0, "R", rows, "plan");
  CheckContiguous(kOp, {"logits", logits}, "it is too large to be copied at each step");
  CheckIndices(kOp, {"plan", plan}, {{"backpointers", backpointers}, {"record", record}});
  CheckRank(kOp, {"backpointers", backpointers}, 2, "[R, B]");
  CheckSize(kOp, {"backpointers", backpointers}, 0, "R", rows, "plan");
  CheckSize(kOp, {"backpointers", backpointers}, 1, "B", unpacked.reach, "tables");
  CheckContiguous(kOp, {"backpointers", backpointers}, "beam_inputs made it so");
  CheckRank(kOp, {"record", record}, 2, "[R, words]");
  CheckSize(kOp, {"record", record}, 0, "R", rows, "plan");
  CheckSize(kOp, {"record", record}, 1, "words", kRecordWords, "the contract");
  CheckContiguous(kOp, {"record", record}, "it is changed in place");
  if (plan.is_cpu()) CheckPlan(kOp, plan, unpacked, logits.size(1));
  if (rows == 0) return;
  const auto floats = logits.options().dtype(at::kFloat);
  at::Tensor found = at::empty({rows, kMaxFound}, floats);
  at::Tensor found_tokens = at::empty({rows, kMaxFound}, plan.options());
  at::Tensor also = at::empty({rows}, floats);
  at::Tensor log_normalizers = at::empty({rows}, floats);
  const int64_t device_rows = logits.is_cpu() ? 0 : rows;
  at::Tensor column_highest = at::empty({device_rows, kLogitColumns}, floats);
  at::Tensor column_sums = at::empty({device_rows, kLogitColumns / 32, 2}, floats);
  at::Tensor repeated =
      at::empty({device_rows, unpacked.longest + kMaxRepeatedNgram}, plan.options());
  kernel({.plan = plan.const_data_ptr<int32_t>(),
          .tables = unpacked,
          .special = Special(kOp, special),
          .grammar = UnpackGrammar(kOp, logits, grammar),
          .type = FloatTypeOf(logits),
          .logits = logits.const_data_ptr(),
          .backpointers = backpointers.const_data_ptr<int32_t>(),
          .record = reinterpret_cast<BeamRecord*>(record.mutable_data_ptr<int32_t>()),
          .found = found.mutable_data_ptr<float>(),
          .found_tokens = found_tokens.mutable_data_ptr<int32_t>(),
          .also = also.mutable_data_ptr<float>(),
          .log_normalizers = log_normalizers.mutable_data_ptr<float>(),
          .rows = rows,
          .plan_stride = plan.size(1),
          .vocabulary = logits.size(1),
          .column_highest = column_highest.mutable_data_ptr<float>(),
          .column_sums = column_sums.mutable_data_ptr<float>(),
          .repeated = repeated.mutable_data_ptr<int32_t>()});
}

StepRows CallBeamInputs(const at::Tensor& plan, at::TensorList tables, at::IntArrayRef special,
                        int64_t row_blocks) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("linnet::beam_inputs", "")
                             .typed<decltype(BeamInputsCpuOp)>();
  auto [tokens, positions, backpointers, blocks, source_lengths] =
      op.call(plan, tables, special, row_blocks);
  return {std::move(tokens), std::move(positions), std::move(backpointers), std::move(blocks),
          std::move(source_lengths)};
}

void CallBeamStep(const at::Tensor& plan, const at::Tensor& logits, const at::Tensor& backpointers,
                  at::TensorList tables, at::IntArrayRef special, at::TensorList grammar,
                  at::Tensor& record) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("linnet::beam_step", "")
                             .typed<decltype(BeamStepCpuOp)>();
  op.call(plan, logits, backpointers, tables, special, grammar, record);
}

std::vector<at::Tensor> NewBeamTables(int64_t slots, int64_t reach, int64_t longest,
                                      at::Device device) {
  const auto ints = at::TensorOptions(device).dtype(at::kInt);
  return {at::zeros({slots}, ints),        at::zeros({slots}, ints.dtype(at::kFloat)),
          at::zeros({slots, reach}, ints), at::zeros({2, slots, longest}, ints),
          at::zeros({slots, 2}, ints),     at::zeros({slots}, ints)};
}

TORCH_LIBRARY_FRAGMENT(linnet, m) {
  m.def(
      "beam_inputs(Tensor plan, Tensor[] tables, int[] special, int row_blocks) -> "
      "(Tensor tokens, Tensor positions, Tensor backpointers, Tensor blocks, Tensor "
      "source_lengths)");
  m.def(
      "beam_step(Tensor plan, Tensor logits, Tensor backpointers, Tensor(a!)[] tables, int[] "
      "special, "
      "Tensor[] grammar, Tensor(b!) record) -> ()");
}

TORCH_LIBRARY_IMPL(linnet, CPU, m) {
  m.impl("beam_inputs", BeamInputsCpuOp);
  m.impl("beam_step", BeamStepCpuOp);
}

}  // namespace linnet::ops
