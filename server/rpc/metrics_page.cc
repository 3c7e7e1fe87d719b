#include "server/rpc/metrics_page.h"

#include <CivetServer.h>
#include <prometheus/exposer.h>

#include <exception>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace linnet::server {
namespace {

// A peer that sends no request keeps a thread for the timeout.
constexpr char kThreads[] = "4";
constexpr char kRequestTimeoutMs[] = "2000";
constexpr absl::string_view kStartPage =
    "<!DOCTYPE html><title>linnet-server</title>"
    "<p>linnet-server: <a href=\"/metrics\">/metrics</a> for Prometheus</p>\n";

// Handles "/", which the exposer does not serve; returns 0 for every other path, which leaves it to
// the exposer.
int ServeStartPage(mg_connection* connection) {
  const mg_request_info& request = *mg_get_request_info(connection);
  if (absl::NullSafeStringView(request.local_uri) != "/") return 0;
  mg_send_http_ok(connection, "text/html; charset=utf-8", kStartPage.size());
  if (absl::string_view(request.request_method) != "HEAD") {
    mg_write(connection, kStartPage.data(), kStartPage.size());
  }
  return 200;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsPage>> MetricsPage::Open(const std::string& address,
                                                               const Metrics& metrics) {
  if (absl::StartsWith(address, "[") && mg_check_feature(MG_FEATURES_IPV6) == 0) {
    return absl::UnimplementedError(
        absl::StrCat("cannot serve metrics on ", address,
                     ": the civetweb library of this machine was built without IPv6; set "
                     "--metrics-listen to an IPv4 address, such as 0.0.0.0:9464"));
  }
  std::unique_ptr<MetricsPage> page(new MetricsPage);
  CivetCallbacks callbacks;
  callbacks.begin_request = ServeStartPage;
  try {  // the exposer throws if it cannot listen
    page->exposer_ = std::make_unique<prometheus::Exposer>(
        std::vector<std::string>{"listening_ports", address, "num_threads", kThreads,
                                 "request_timeout_ms", kRequestTimeoutMs},
        &callbacks);
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
