#pragma once

#include <string>

#include "model/runtime/bundle/bundle.h"

namespace linnet::model::testing {

// What the tests know about the tiny model.
struct TinyModel {
  static constexpr int kVocabulary = 48;
  static constexpr int kMaxSourceTokens = 40;
  static constexpr int kMaxTargetTokens = 24;
  static constexpr int kMarked =
      45;  // in a source: NaN comes out of the encoder for it; in a target: as any other
  static constexpr int kThrower = 46;  // in a target: the step throws, on the CPU
  static constexpr int kStopper = 47;  // in a source: the encoder throws
};

// A TorchScript module of two decoder layers (a dynamic and a light convolution with windows of 5
// and 3, each with encoder attention) and random weights of a fixed seed, written from C++: the
// contract of scripted_model.h and no more. The special tokens above are never chosen by a search.
// Made once per process, in a folder that is removed at exit.
const Bundle& TinyBundle();
// The same model whose alignment throws at its third step.
const Bundle& ThrowingAlignBundle();
// The same model without a method that picks the best logits: its steps give whole rows.
const Bundle& WholeRowsBundle();
// Without that, and without a method that packs its weights.
const Bundle& UnpackableBundle();

// The same manifest around a module of this TorchScript source.
Bundle BundleOf(const std::string& source);

}  // namespace linnet::model::testing
