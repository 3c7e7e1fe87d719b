#pragma once

#include <string>

namespace linnet::client {

// Replaces the names of request fields in the text of an error by the flags that set them:
// "options.beam_size: is 99" becomes "--beam: is 99".
std::string InFlags(const std::string& error);

}  // namespace linnet::client
