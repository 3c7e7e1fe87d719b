// The flags of `linnet-load`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/library/client.h"
#include "client/load/load_client.h"
#include "client/load/report.h"
#include "client/run/run.h"

namespace linnet::client {

// The parsed command line. CLI11 writes into it.
struct LoadFlags {
  ClientOptions client;
  int channels = 1;

  std::optional<double> rate;
  std::optional<RateSchedule> schedule;
  bool find_rate = false;
  std::vector<double> rates = {1, 10000};  // the range of --find-rate: min and max
  double precision = 0.05;
  std::string arrivals = "poisson";
  std::optional<int> concurrency;
  int max_in_flight = 256;
  std::optional<int64_t> calls;
  std::optional<absl::Duration> duration;
  std::optional<Objective> objective;
  absl::Duration warm_up = absl::ZeroDuration();
  absl::Duration drain = absl::Seconds(30);
  uint64_t seed = 1;
  AbandonmentOptions abandonment;

  std::string mix;
  std::string file;
  std::vector<int> words = {3, 25};
  int texts = 1;
  std::string task = "translate";
  std::string to, from, model;
  std::optional<int> beam;

  bool json = false;
  std::string html, csv, compare;
  std::vector<std::string> metrics;
};

// `flags` must outlive the parsing.
void AddLoadFlags(CLI::App* app, LoadFlags* flags);

// Checks combinations of flags. Throws CLI::ValidationError.
void CheckLoadFlags(const LoadFlags& flags);

LoadPlan BuildPlan(const LoadFlags& flags);

// Returns the kinds of calls; reads the files that the flags name.
absl::StatusOr<std::vector<CallKind>> BuildCallKinds(const LoadFlags& flags);

LoadSettings BuildSettings(const LoadFlags& flags, const std::vector<CallKind>& kinds);

}  // namespace linnet::client
