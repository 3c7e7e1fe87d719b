#include "server/rpc/metrics_page.h"

#include <prometheus/exposer.h>

#include <exception>

#include "absl/strings/str_cat.h"

namespace linnet::server {

absl::StatusOr<std::unique_ptr<MetricsPage>> MetricsPage::Open(const std::string& address,
                                                               const Metrics& metrics) {
  std::unique_ptr<MetricsPage> page(new MetricsPage);
  try {  // the exposer throws where it cannot listen
    page->exposer_ = std::make_unique<prometheus::Exposer>(address);
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics on ", address,
                     ": the address is taken or not of this "
                     "machine; choose another with --metrics-listen, port 0 picks one"));
  }
  page->collectable_ = metrics.page();
  page->exposer_->RegisterCollectable(page->collectable_);
  page->port_ = page->exposer_->GetListeningPorts().front();
  return page;
}

MetricsPage::~MetricsPage() = default;

}  // namespace linnet::server
