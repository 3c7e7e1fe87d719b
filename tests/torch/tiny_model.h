#pragma once

#include <string>

#include "model/runtime/bundle/bundle.h"

namespace linnet::model::testing {

// Constants of the tiny model.
struct TinyModel {
  static constexpr int kVocabulary = 48;
  static constexpr int kMaxSourceTokens = 40;
  static constexpr int kMaxTargetTokens = 24;
  static constexpr int kMarked =
      45;  // in a source: the encoder returns NaN for it; in a target: an ordinary token
  static constexpr int kThrower = 46;  // in a target: the step throws, on the CPU
  static constexpr int kStopper = 47;  // in a source: the encoder throws
};

// A TorchScript module of two decoder layers (a dynamic and a light convolution of widths 5 and 3,
// each with encoder attention) with random weights of a fixed seed, written from C++. It has the
// methods of scripted_model.h. Searches never select the special tokens above. Made once per
// process, in a folder that is removed at exit.
const Bundle& TinyBundle();
// The same model, whose sources can be encoded in blocks as well.
const Bundle& BlocksBundle();
// The same model without align_features and best_of, whose alignments need a pass.
const Bundle& PassAlignBundle();
// The same model whose alignment throws at its third step.
const Bundle& ThrowingAlignBundle();

// The same model whose encoder, given the stopper, waits for a decoder step at position 8, which no
// warm-up makes.
const Bundle& WaitingEncoderBundle();

// The same manifest around a module of this TorchScript source.
Bundle BundleOf(const std::string& source);

}  // namespace linnet::model::testing
