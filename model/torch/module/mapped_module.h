#pragma once

#include <torch/csrc/jit/api/module.h>

#include <filesystem>

namespace linnet::model {

// Reads a TorchScript file for the CPU as torch::jit::load does, but maps weights of at least 64
// KiB into memory instead of reading them: a page takes memory once it is read, processes share it,
// and a weight gives all its pages back when its last tensor goes, for example because it was
// packed. Such weights are read-only: a write ends the process, and so does reading one after the
// file was cut, which is why files of bundles are replaced by renaming and never overwritten.
//
// Throws c10::Error if the file cannot be read, and std::runtime_error if it has weights in a form
// that cannot be mapped.
torch::jit::Module LoadMapped(const std::filesystem::path& file);

}  // namespace linnet::model
