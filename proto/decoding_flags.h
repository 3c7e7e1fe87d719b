#pragma once

#include <functional>
#include <string>
#include <vector>

#include "linnet/v1/text_service.pb.h"

namespace CLI {
class App;
}

namespace linnet {

// One field of linnet.v1.DecodingOptions as a flag of linnet and linnet-decode.
struct DecodingFlag {
  const google::protobuf::FieldDescriptor* field;
  // The name of the field with dashes, and an alias before it: {"--beam", "--beam-size"}.
  std::vector<std::string> names;
  std::string value;  // placeholder of the value in a help text: N, X or BOOL
  std::string about;
};

// All fields, in the order of the message. Aborts if a field has no help text in this table.
const std::vector<DecodingFlag>& DecodingFlags();

// Adds all flags to the command, in the group "Decoding". `options` returns the message that they
// set; it is called when the first flag is parsed, so that a message can be created then.
void AddDecodingFlags(CLI::App& command, const std::function<v1::DecodingOptions*()>& options);

}  // namespace linnet
