// A user of the client in C++17. The test is that this file compiles.
#include "client/library/client.h"

static_assert(__cplusplus == 201703L, "CMakeLists.txt sets the standard of this file");

namespace linnet::client {

absl::StatusOr<std::string> TranslateOne(Client& client, const std::string& text) {
  v1::TranslateRequest request;
  request.add_contents(text);
  request.set_target_language_code("de");
  absl::StatusOr<v1::TranslateResponse> response = client.Translate(request);
  if (!response.ok()) return response.status();
  return response->translations(0).text();
}

}  // namespace linnet::client
