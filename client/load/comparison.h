// A load report beside an earlier one.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/load/report.h"

namespace linnet::client {

// A report of --json of an earlier run. Reports of versions that wrote less have fewer figures.
class EarlierReport {
 public:
  // INVALID_ARGUMENT with the file if it cannot be read, or is not one report of linnet-load.
  static absl::StatusOr<EarlierReport> Read(const std::string& file);

  // `json` is the later report, of LoadReportJson.
  Comparison CompareWith(absl::string_view json) const;

 private:
  EarlierReport(std::string file, std::string json)
      : file_(std::move(file)), json_(std::move(json)) {}

  std::string file_, json_;
};

// "compared with FILE of 2026-…", its differences, and a line for each figure.
std::string ComparisonText(const Comparison& comparison);

// The cores that this process may use.
int UsableCores();

}  // namespace linnet::client
