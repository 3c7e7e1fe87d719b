#include <memory>

#include "model/runtime/search/beam_search.h"
#include "model/runtime/search/sampler.h"
#include "model/runtime/search/scorer.h"
#include "model/runtime/search/search.h"

namespace linnet::model {

std::unique_ptr<Search> NewSearch(const SearchSpec& spec) {
  if (spec.target.has_value()) return std::make_unique<Scorer>(spec);
  if (spec.options.sampling()) return std::make_unique<Sampler>(spec);
  return std::make_unique<BeamSearch>(spec);
}

}  // namespace linnet::model
