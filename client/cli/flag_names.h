#pragma once

#include <string>

namespace linnet::client {

// The text of an error in the words of the command line: where it names a field of a request, the
// flag that sets it stands instead ("options.beam_size: is 99" becomes "--beam: is 99").
std::string InFlags(const std::string& error);

}  // namespace linnet::client
