// CUDA's beam search compared with the CPU's, emulated or on a GPU: see kernels_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "model/ops/params.h"
#include "model/ops/search/beam_body.h"
#include "tests/ops/cuda/array.h"
#include "tests/ops/cuda/memory.h"

namespace linnet::ops {
namespace {

// An arbitrary automaton.
struct Grammar {
  static constexpr int kStates = 5, kClasses = 6;
  std::vector<uint8_t> classes;
  std::vector<int32_t> transitions = std::vector<int32_t>(kStates * kClasses),
                       tails = std::vector<int32_t>(kStates);

  Grammar(int vocabulary, std::mt19937& random) : classes(vocabulary) {
    for (uint8_t& token : classes) token = random() % kClasses;
    for (int32_t& next : transitions)
      next = random() % kStates + (random() % 3 == 0 ? BeamGrammar::kForbidden : 0);
    for (int32_t& tail : tails) tail = random() % 4;
  }
  BeamGrammar get() const { return {classes.data(), transitions.data(), tails.data(), kClasses}; }
};

// Random tables and plans of some beam searches.
struct Beams {
  static constexpr int kRows = 40, kSlots = 44, kReach = 4, kLongest = 24, kBlocks = 2;
  static constexpr int kStride = kPlanWords + kBlocks;

  std::vector<int32_t> plan = std::vector<int32_t>(kRows * kStride);
  std::vector<int32_t> tokens = std::vector<int32_t>(kSlots);
  std::vector<float> sums = std::vector<float>(kSlots);
  std::vector<int32_t> backpointers = std::vector<int32_t>(kSlots * kReach);
  std::vector<int32_t> history = std::vector<int32_t>(2 * kSlots * kLongest);
  std::vector<int32_t> counts = std::vector<int32_t>(kSlots * 2);
  std::vector<int32_t> states = std::vector<int32_t>(kSlots);

  explicit Beams(int vocabulary, std::mt19937& random) {
    std::vector<int32_t> slots(kSlots);
    std::iota(slots.begin(), slots.end(), 0);
    std::shuffle(slots.begin(), slots.end(), random);
    for (int r = 0; r < kRows; ++r) at(r).search = -1;
    int row = 0;
    for (int n = 0; row < kRows; ++n) {
      BeamPlan& own = at(n);
      own.beam = std::min<int32_t>(kRows - row, random() % 6 == 0 ? kMaxBeam : 1 + random() % 6);
      if (random() % 6 == 0) {  // padding rows
        row += own.beam;
        own.beam = 0;
        continue;
      }
      own.first_row = row;
      own.position = random() % 4 == 0 ? 0 : random() % (kLongest - 2);
      own.forced = random() % 5 == 0 ? random() % vocabulary : -1;
      own.may_end = random() % 3 != 0;
      own.ngram = random() % 2 == 0 ? 0 : 1 + random() % 3;
      own.repeats = random() % 2 == 0 ? 0 : 1 + random() % 2;
      own.unknown_penalty = random() % 2 == 0 ? 0.0f : 1.5f;
      own.temperature = random() % 2 == 0 ? 1.0f : 0.6f;
      own.source_tokens = 9;
      own.left = random() % 4;
      own.silent = random() % 3 == 0;
      std::copy_n(slots.begin() + row, own.beam, own.slots);
      for (int i = 0; i < own.beam; ++i) at(row + i).search = n;
      counts[2 * own.slots[0]] = random() % (own.beam + 1);
      counts[2 * own.slots[0] + 1] = random() % own.beam;
      row += own.beam;
    }
    std::normal_distribution<float> normal;
    for (float& sum : sums) sum = normal(random);
    for (int32_t& token : tokens) token = random() % vocabulary;
    for (int32_t& token : history) token = random() % std::min(vocabulary, 8);
    for (int32_t& slot : backpointers) slot = random() % kSlots;
    for (int32_t& state : states) state = random() % Grammar::kStates;
  }

  BeamPlan& at(int row) { return *reinterpret_cast<BeamPlan*>(plan.data() + row * kStride); }
  BeamTables tables() {
    return {tokens.data(),  sums.data(),   backpointers.data(),
            history.data(), counts.data(), states.data(),
            kSlots,         kReach,        kLongest};
  }
  BeamTables tables(KernelMemory& memory) {
    return {memory.Give(tokens),
            memory.Give(sums),
            memory.Give(backpointers),
            memory.Give(history),
            memory.Give(counts),
            memory.Give(states),
            kSlots,
            kReach,
            kLongest};
  }
  bool operator==(const Beams&) const = default;
};

constexpr BeamSpecialTokens kSpecial = {2, 1, 2, 3};

struct StepRoom {
  std::vector<float> found = std::vector<float>(Beams::kRows * kMaxFound),
                     also = std::vector<float>(Beams::kRows),
                     normalizers = std::vector<float>(Beams::kRows);
  std::vector<int32_t> found_tokens = std::vector<int32_t>(Beams::kRows * kMaxFound, -1);
  std::vector<BeamRecord> record = std::vector<BeamRecord>(Beams::kRows);
  std::vector<float> highest = std::vector<float>(Beams::kRows * kLogitColumns),
                     sums = std::vector<float>(Beams::kRows * kLogitColumns / 16);
  std::vector<int32_t> repeated =
      std::vector<int32_t>(Beams::kRows * (Beams::kLongest + kMaxRepeatedNgram));

  BeamStepParams Params(Beams& beams, FloatType type, void* logits, const int32_t* backpointers,
                        int vocabulary, const BeamGrammar& grammar) {
    return {.plan = beams.plan.data(),
            .tables = beams.tables(),
            .special = kSpecial,
            .grammar = grammar,
            .type = type,
            .logits = logits,
            .backpointers = backpointers,
            .record = record.data(),
            .found = found.data(),
            .found_tokens = found_tokens.data(),
            .also = also.data(),
            .log_normalizers = normalizers.data(),
            .rows = Beams::kRows,
            .plan_stride = Beams::kStride,
            .vocabulary = vocabulary,
            .column_highest = nullptr,
            .column_sums = nullptr,
            .repeated = nullptr};
  }
  // On the device; with the grammar if `bound`.
  BeamStepParams Params(Beams& beams, Array& logits, std::vector<int32_t>& backpointers,
                        int vocabulary, Grammar& grammar, bool bound, KernelMemory& memory) {
    BeamStepParams p =
        Params(beams, logits.type, memory.Give(logits), memory.Give(backpointers), vocabulary, {});
    if (bound) {
      p.grammar = {memory.Give(grammar.classes), memory.Give(grammar.transitions),
                   memory.Give(grammar.tails), Grammar::kClasses};
    }
    p.plan = memory.Give(beams.plan);
    p.tables = beams.tables(memory);
    p.record = memory.Give(record);
    p.found = memory.Give(found);
    p.found_tokens = memory.Give(found_tokens);
    p.also = memory.Give(also);
    p.log_normalizers = memory.Give(normalizers);
    p.column_highest = memory.Give(highest);
    p.column_sums = memory.Give(sums);
    p.repeated = memory.Give(repeated);
    return p;
  }
};

TEST(CudaBeamsTest, BeamSearchEqualsTheCpu) {
  std::mt19937 random(6);
  for (FloatType type : kTypes) {
    for (int vocabulary : {5, 33, 200, 1031, 9000}) {  // the last one takes two rounds of packs
      for (int round = 0; round < 2; ++round) {
        SCOPED_TRACE(testing::Message() << "vocabulary " << vocabulary);
        Beams beams(vocabulary, random), cuda_beams = beams;
        Grammar automaton(vocabulary, random);
        const BeamGrammar grammar = round == 0 ? BeamGrammar{} : automaton.get();
        std::vector<int32_t> backpointers(Beams::kRows * Beams::kReach);
        for (int32_t& slot : backpointers) slot = random() % Beams::kSlots;
        Array logits(type, int64_t{Beams::kRows} * vocabulary, random);
        for (int i = 0; type == FloatType::kFloat32 && i < 40; ++i) {  // ties and impossible tokens
          logits.floats[random() % logits.floats.size()] = 2;
          logits.floats[random() % logits.floats.size()] = -std::numeric_limits<float>::infinity();
        }
        StepRoom cpu, cuda;
        BeamStepCpu(cpu.Params(beams, FloatType::kFloat32, logits.floats.data(),
                               backpointers.data(), vocabulary, grammar));
        Beams before = cuda_beams;
        KernelMemory device;
        BeamStepCuda(
            cuda.Params(cuda_beams, logits, backpointers, vocabulary, automaton, round > 0, device),
            nullptr);
        device.TakeBack();

        // The found logits are bit-identical; normalizers differ by rounding.
        for (int row = 0; row < Beams::kRows; ++row) {
          const int number = before.at(row).search;
          if (number < 0) continue;
          const BeamPlan& plan = before.at(number);
          if (row - plan.first_row >= LiveHypotheses(plan, before.tables())) continue;
          ASSERT_NEAR(cuda.normalizers[row], cpu.normalizers[row], 1e-4) << row;
          ASSERT_EQ(cuda.also[row], cpu.also[row]) << row;
          for (int i = 0; i < 2 * plan.beam && plan.forced < 0; ++i) {
            const int at = row * kMaxFound + i;
            const bool none = cpu.found_tokens[at] < 0;
            // The CPU's list omits -infinity, which no search selects.
            if (none && cuda.found_tokens[at] >= 0) {
              ASSERT_EQ(cuda.found[at], -std::numeric_limits<float>::infinity());
              continue;
            }
            ASSERT_EQ(cuda.found_tokens[at], cpu.found_tokens[at]) << row << " " << i;
            if (!none) {
              ASSERT_EQ(cuda.found[at], cpu.found[at]);
            }
          }
        }
        // From the same candidates, one thread gives the result of a block.
        std::vector<BeamRecord> record(Beams::kRows);
        BeamStepParams single =
            cuda.Params(cuda_beams, type, logits.data(), backpointers.data(), vocabulary, grammar);
        single.tables = before.tables();
        single.record = record.data();
        BeamScratch scratch;
        for (int n = 0; n < Beams::kRows; ++n) AdvanceSearch(single, n, scratch, SingleThread());
        ASSERT_EQ(
            std::memcmp(record.data(), cuda.record.data(), record.size() * sizeof(BeamRecord)), 0);
        ASSERT_TRUE(before == cuda_beams);
      }
    }
  }
}

TEST(CudaBeamsTest, BeamInputsEqualTheCpu) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    Beams beams(100, random);
    struct Room {
      std::vector<int64_t> tokens = std::vector<int64_t>(Beams::kRows, -7);
      std::vector<int32_t> positions = std::vector<int32_t>(Beams::kRows, -7),
                           backpointers = std::vector<int32_t>(Beams::kRows * Beams::kReach, -7),
                           blocks = std::vector<int32_t>(Beams::kRows * Beams::kBlocks, -7),
                           lengths = std::vector<int32_t>(Beams::kRows, -7);
      bool operator==(const Room&) const = default;
    } cpu, cuda;
    const auto params = [&](Room& room) {
      return BeamInputsParams{.plan = beams.plan.data(),
                              .tables = beams.tables(),
                              .special = kSpecial,
                              .tokens = room.tokens.data(),
                              .positions = room.positions.data(),
                              .backpointers = room.backpointers.data(),
                              .blocks = room.blocks.data(),
                              .source_lengths = room.lengths.data(),
                              .rows = Beams::kRows,
                              .plan_stride = Beams::kStride,
                              .row_blocks = Beams::kBlocks};
    };
    BeamInputsCpu(params(cpu));
    KernelMemory device;
    BeamInputsParams on_device = params(cuda);
    on_device.plan = device.Give(beams.plan);
    on_device.tables = beams.tables(device);
    on_device.tokens = device.Give(cuda.tokens);
    on_device.positions = device.Give(cuda.positions);
    on_device.backpointers = device.Give(cuda.backpointers);
    on_device.blocks = device.Give(cuda.blocks);
    on_device.source_lengths = device.Give(cuda.lengths);
    BeamInputsCuda(on_device, nullptr);
    device.TakeBack();
    EXPECT_TRUE(cpu == cuda);
  }
}

}  // namespace
}  // namespace linnet::ops
