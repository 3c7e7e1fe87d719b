#include "server/models/health_reader.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace linnet::server {

bool HealthReader::Read() {
  // Before the models: what changes while they are read is read again.
  const std::optional<int64_t> idle_period = supervisor_.idle_period();
  const int64_t reloads = catalog_.reloads();
  if (idle_period.has_value() && idle_period == idle_period_ && reloads == reloads_) return false;
  CatalogHealth health;
  bool all_up = true;
  const std::vector<std::shared_ptr<ServedModel>> models = catalog_.models();
  for (const auto& model : models) {
    const EngineHealth engine = model->scheduler->health();
    health.models.push_back(
        {model->key(), engine.state, engine.restarts, model->scheduler->load_stats()});
    all_up &= engine.state == EngineHealth::State::kUp;
    ++models_read_;
  }
  for (const auto& [folder, cause] : catalog_.not_loaded()) health.missing.push_back(folder);
  const bool changed = health != health_;
  for (size_t i = 0; changed && i < models.size(); ++i) {
    models[i]->metrics->SetRestarts(health.models[i].restarts);
    models[i]->metrics->SetLoads(health.models[i].loads);
  }
  health_ = std::move(health);
  idle_period_ = all_up ? idle_period : std::nullopt;
  reloads_ = reloads;
  return changed;
}

}  // namespace linnet::server
