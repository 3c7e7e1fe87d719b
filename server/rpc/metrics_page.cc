#include "server/rpc/metrics_page.h"

#include <CivetServer.h>
#include <prometheus/exposer.h>

#include <exception>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "server/base/exceptions.h"
#include "server/base/mutex.h"
#include "server/rpc/status_page.h"

namespace linnet::server {
namespace {

// A peer that sends no request keeps a thread for the timeout, so a scrape waits at most
// kRequestTimeoutMs for each kThreads silent peers before it.
constexpr char kThreads[] = "64";
constexpr char kRequestTimeoutMs[] = "1000";

// Holds the metrics of which each server makes its page, by the context that civetweb gives to its
// callbacks; prometheus-cpp's exposer has no room for data of ours.
struct StartPages {
  Mutex mu;
  std::map<const mg_context*, std::shared_ptr<prometheus::Collectable>> by_context
      ABSL_GUARDED_BY(mu);
};

StartPages& Pages() {
  static StartPages& pages = *new StartPages;  // outlives the threads of every server
  return pages;
}

// They belong to the page that this thread is opening: the exposer's constructor calls
// AddStartPage.
thread_local const std::shared_ptr<prometheus::Collectable>* opening = nullptr;
thread_local const mg_context* opened = nullptr;

void AddStartPage(const mg_context* context) {
  MutexLock lock(Pages().mu);
  Pages().by_context[context] = *opening;
  opened = context;
}

// Handles "/", which the exposer does not serve; returns 0 for every other path, which leaves it to
// the exposer.
int ServeStartPage(mg_connection* connection) {
  const mg_request_info& request = *mg_get_request_info(connection);
  if (absl::NullSafeStringView(request.local_uri) != "/") return 0;
  std::shared_ptr<prometheus::Collectable> metrics;
  {
    MutexLock lock(Pages().mu);
    const auto found = Pages().by_context.find(mg_get_context(connection));
    if (found == Pages().by_context.end()) return 0;
    metrics = found->second;
  }
  std::string page;
  try {
    page = StatusPage(metrics->Collect(), absl::Now());
  } catch (...) {  // there is no memory for it
    LogException("status_page_failed");
    mg_send_http_error(connection, 503, "no memory for the page");
    return 503;
  }
  // The page may load nothing, and its styles are its own.
  mg_printf(connection,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: "
            "%d\r\nCache-Control: no-store\r\nContent-Security-Policy: default-src 'none'; "
            "style-src 'unsafe-inline'\r\nX-Content-Type-Options: nosniff\r\nConnection: "
            "close\r\n\r\n",
            static_cast<int>(page.size()));
  if (absl::string_view(request.request_method) != "HEAD")
    mg_write(connection, page.data(), page.size());
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
  callbacks.init_context = AddStartPage;
  callbacks.begin_request = ServeStartPage;
  page->collectable_ = metrics.page();
  opening = &page->collectable_;
  opened = nullptr;
  try {  // the exposer throws if it cannot listen
    page->exposer_ = std::make_unique<prometheus::Exposer>(
        std::vector<std::string>{"listening_ports", address, "num_threads", kThreads,
                                 "request_timeout_ms", kRequestTimeoutMs},
        &callbacks);
  } catch (const std::exception& error) {
    page->context_ = opened;
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics on ", address,
                     ": the address is taken or not of this "
                     "machine; choose another with --metrics-listen, port 0 picks one"));
  }
  page->context_ = opened;
  page->exposer_->RegisterCollectable(page->collectable_);
  page->port_ = page->exposer_->GetListeningPorts().front();
  return page;
}

MetricsPage::~MetricsPage() {
  exposer_.reset();  // no request is answered any more
  MutexLock lock(Pages().mu);
  Pages().by_context.erase(static_cast<const mg_context*>(context_));
}

}  // namespace linnet::server
