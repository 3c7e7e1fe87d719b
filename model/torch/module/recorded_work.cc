#include "model/torch/module/recorded_work.h"

#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/torch/module/catch_torch_errors.h"
#include "model/torch/module/device_event.h"

namespace linnet::model {

RecordedWork::RecordedWork(std::string name, std::string items, std::vector<int> sizes,
                           bool time_gemms, Work work)
    : name_(std::move(name)),
      items_(std::move(items)),
      sizes_(std::move(sizes)),
      time_gemms_(time_gemms),
      work_(std::move(work)) {}

void RecordedWork::Prepare(const c10::Stream& stream, const std::string& no_graphs) {
  const c10::StreamGuard guard(stream);
  recorder_ = no_graphs.empty() ? ops::NewGraphRecorder() : nullptr;
  summary_ = "no graphs: " + (no_graphs.empty() ? "not on this device" : no_graphs);
  if (recorder_ == nullptr && stream.device_type() == at::kCPU) return;
  // The largest first, so that the smaller ones reuse its memory in the pool.
  std::vector<int> sizes = sizes_;
  if (recorder_ == nullptr) sizes = {max()};
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    {
      const ops::GemmScope scope(time_gemms_ ? ops::GemmMode::kChoose : ops::GemmMode::kLibrary);
      work_(*size);
    }
    if (recorder_ == nullptr) continue;
    WaitFor(stream);
    try {
      const ops::GemmScope scope(time_gemms_ ? ops::GemmMode::kTable : ops::GemmMode::kLibrary);
      graphs_[*size] = recorder_->Record([&] { work_(*size); });
      summary_ = absl::StrCat(graphs_.size(), " graphs");
    } catch (const std::exception& error) {
      const std::string doing =
          absl::StrCat("recording ", name_, " of ", *size, " ", items_, " failed");
      throw GraphsFailed(std::string(StatusOfException(doing, error).message()));
    }
  }
}

int RecordedWork::SizeFor(int items) const {
  return *std::lower_bound(sizes_.begin(), sizes_.end(), items);
}

void RecordedWork::Launch(int size) {
  if (const auto graph = graphs_.find(size); graph != graphs_.end()) {
    graph->second->Launch();
    return;
  }
  const ops::GemmScope scope(time_gemms_ ? ops::GemmMode::kTable : ops::GemmMode::kLibrary);
  work_(size);
}

}  // namespace linnet::model
