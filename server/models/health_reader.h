#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/models/catalog.h"
#include "server/schedule/engine_status.h"
#include "server/schedule/supervisor.h"

namespace linnet::server {

// The health of the models of a catalog.
struct CatalogHealth {
  struct Model {
    std::string key;
    EngineHealth::State state;
    int restarts;
    LoadStats loads;
    bool operator==(const Model&) const = default;
  };
  std::vector<Model> models = {};         // by key
  std::vector<std::string> missing = {};  // folders of the bundles that could not be loaded

  bool operator==(const CatalogHealth&) const = default;
};

// Reads the health of the models of a catalog, and shows it in their metrics. It reads the models
// only if their health may have changed: none of them costs anything while nobody calls any. Not
// thread-safe.
class HealthReader {
 public:
  // Both outlive the reader; the supervisor is that of the catalog's models.
  HealthReader(const Catalog& catalog, const Supervisor& supervisor)
      : catalog_(catalog), supervisor_(supervisor) {}

  // Returns true if the health differs from that of the last call.
  bool Read();
  const CatalogHealth& health() const { return health_; }
  // Number of reads of a model's health so far.
  int64_t models_read() const { return models_read_; }

 private:
  const Catalog& catalog_;
  const Supervisor& supervisor_;
  CatalogHealth health_;
  int64_t models_read_ = 0;
  // When it was read: as long as these are the same, it has not changed. Not set if an engine was
  // not idle, or if one was down, which may be up again after some time.
  std::optional<int64_t> idle_period_;
  int64_t reloads_ = 0;
};

}  // namespace linnet::server
