#include "client/library/request_checks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/library/utf8.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Checks the strings of a field, also those inside its messages. `index` is -1 for a single value.
absl::Status CheckField(const Message& message, const FieldDescriptor& field, int index,
                        const std::string& path);

absl::Status CheckMessage(const Message& message, const std::string& prefix) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = absl::StrCat(prefix, field->name());
    if (!field->is_repeated()) {
      RETURN_IF_ERROR(CheckField(message, *field, -1, path));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      RETURN_IF_ERROR(CheckField(message, *field, i, absl::StrCat(path, "[", i, "]")));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckField(const Message& message, const FieldDescriptor& field, int index,
                        const std::string& path) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (field.type() == FieldDescriptor::TYPE_STRING) {
    std::string scratch;
    return CheckUtf8(
        path, index < 0 ? reflection.GetStringReference(message, &field, &scratch)
                        : reflection.GetRepeatedStringReference(message, &field, index, &scratch));
  }
  if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
    const Message& inner = index < 0 ? reflection.GetMessage(message, &field)
                                     : reflection.GetRepeatedMessage(message, &field, index);
    return CheckMessage(inner, path + ".");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStrings(const Message& request) { return CheckMessage(request, ""); }

absl::Status CheckRequestId(const std::string& request_id) {
  constexpr size_t kMaxBytes = 128;
  if (request_id.size() <= kMaxBytes &&
      std::all_of(request_id.begin(), request_id.end(), absl::ascii_isgraph)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("request id of ", request_id.size(),
                                                 " bytes is not at most ", kMaxBytes,
                                                 " visible ASCII characters, without blanks"));
}

}  // namespace linnet::client
