#include "client/command/connection_flags.h"

#include <string>

#include "absl/time/time.h"
#include "client/command/duration_flag.h"

namespace linnet::client {

void AddConnectionFlags(CLI::App* command, ClientOptions* options) {
  const auto add = [command](const char* flag, std::string* to, const char* type,
                             const char* about) {
    return command->add_option(flag, *to, about)->type_name(type)->take_last()->group("Connection");
  };
  add("--server", &options->server, "HOST:PORT",
      "the server; dns:///HOST:PORT, or IP:PORT,IP:PORT,…, for several, used round-robin")
      ->capture_default_str();
  command->add_flag("--tls", options->tls.enabled, "encrypt the connection")->group("Connection");
  add("--tls-ca", &options->tls.ca_file, "FILE",
      "trusted certificate authorities, PEM; without it, those of the system");
  add("--tls-cert", &options->tls.certificate_file, "FILE", "client certificate, PEM, for mTLS");
  add("--tls-key", &options->tls.key_file, "FILE", "key of the client certificate, PEM");
  add("--tls-server-name", &options->tls.server_name, "NAME",
      "name in the server's certificate, if it is not the host; a list of servers needs it");
  add("--token-file", &options->token_file, "FILE", "bearer token, sent with each call");
  const auto add_duration = [command](const char* flag, absl::Duration* to, const char* about) {
    const auto set = [=](const std::string& text) { *to = ParseDuration(flag, text); };
    command->add_option_function<std::string>(flag, set, about)
        ->type_name("TIME")
        ->take_last()
        ->group("Connection");
  };
  add_duration("--timeout", &options->timeout,
               "of each call, its retries included [60s; of the texts of files 1h]");
  add_duration("--wait", &options->wait, "wait so long for a server that is starting [0]");
}

}  // namespace linnet::client
