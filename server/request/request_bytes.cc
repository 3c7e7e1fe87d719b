#include "server/request/request_bytes.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/runtime/text/segmenter.h"
#include "proto/status_macros.h"
#include "server/base/errors.h"

namespace linnet::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::internal::WireFormatLite;

// Returns a path such as "options.beam_size", "contents[3]" or "lines[2].text".
std::string FieldPath(absl::string_view above, const FieldDescriptor& field, int index) {
  return absl::StrCat(above, above.empty() ? "" : ".", field.name(),
                      field.is_repeated() ? absl::StrCat("[", index, "]") : "");
}

// Finds the field that is not UTF-8 in a message that protobuf rejected; OK if there is none. The
// recursion is bounded by the nesting of the types, which are not recursive.
absl::Status FindInvalidText(absl::string_view bytes, const Descriptor& descriptor,
                             absl::string_view above) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  std::map<int, int> seen;
  while (const uint32_t tag = in.ReadTag()) {
    const FieldDescriptor* field =
        descriptor.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    if (field == nullptr ||
        WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED ||
        (field->type() != FieldDescriptor::TYPE_STRING &&
         field->type() != FieldDescriptor::TYPE_MESSAGE)) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
      continue;
    }
    uint32_t size = 0;
    std::string value;
    if (!in.ReadVarint32(&size) || !in.ReadString(&value, static_cast<int>(size))) break;
    const std::string path = FieldPath(above, *field, seen[field->number()]++);
    if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
      RETURN_IF_ERROR(FindInvalidText(value, *field->message_type(), path));
    } else if (const int byte = model::FirstInvalidUtf8(value); byte >= 0) {
      return BadField(path, Reason::kInvalidUtf8,
                      absl::StrCat("text must be UTF-8, byte ", byte, " is not"),
                      {{"byte", absl::StrCat(byte)}});
    }
  }
  return absl::OkStatus();
}

// True if the API once had this field: the numbers of removed fields are reserved one by one, those
// for later ones as ranges of several.
bool WasRemoved(const google::protobuf::Descriptor& type, int number) {
  for (int i = 0; i < type.reserved_range_count(); ++i) {
    const auto& range = *type.reserved_range(i);  // without its end
    if (range.start == number && range.end == number + 1) return true;
  }
  return false;
}

absl::Status RefuseUnknownFields(const Message& message, absl::string_view above) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (const auto& unknown = reflection.GetUnknownFields(message); !unknown.empty()) {
    const int number = unknown.field(0).number();
    return BadField(above.empty() ? kWholeRequest : above, Reason::kUnknownField,
                    absl::StrCat("field ", number, " of ", message.GetDescriptor()->full_name(),
                                 WasRemoved(*message.GetDescriptor(), number)
                                     ? " was removed from the API, see CHANGELOG.md of this server"
                                     : " is not known to this server",
                                 ": leave it unset"),
                    {{"number", absl::StrCat(number)}});
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const Message& part = field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                 : reflection.GetMessage(message, field);
      RETURN_IF_ERROR(RefuseUnknownFields(part, FieldPath(above, *field, i)));
    }
  }
  return absl::OkStatus();
}

// Memory per field: an object or a node of a map, with the pointers to it and the overhead of the
// allocator.
constexpr int64_t kBytesPerField = 160;

// Counts the fields of a message and of all nested messages, known or not. In malformed bytes it
// counts the fields that can be read.
int64_t CountFields(absl::string_view bytes, const Descriptor* descriptor) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  int64_t fields = 0;
  // The fields of a group (only unknown fields can be groups) are between two tags.
  while (const uint32_t tag = in.ReadTag()) {
    ++fields;
    uint64_t number;
    uint32_t size;
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_VARINT:
        if (!in.ReadVarint64(&number)) return fields;
        break;
      case WireFormatLite::WIRETYPE_FIXED64:
        if (!in.Skip(8)) return fields;
        break;
      case WireFormatLite::WIRETYPE_FIXED32:
        if (!in.Skip(4)) return fields;
        break;
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
        if (!in.ReadVarint32(&size)) return fields;
        const int begin = in.CurrentPosition();
        if (!in.Skip(static_cast<int>(size))) return fields;
        const FieldDescriptor* field =
            descriptor == nullptr
                ? nullptr
                : descriptor->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
        if (field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE)
          fields += CountFields(bytes.substr(begin, size), field->message_type());
        break;
      }
      default:
        break;
    }
  }
  return fields;
}

}  // namespace

int64_t ParsedBytes(absl::string_view bytes, const Descriptor& descriptor) {
  return 2 * static_cast<int64_t>(bytes.size()) + kBytesPerField * CountFields(bytes, &descriptor);
}

absl::Status ParseRequest(absl::string_view bytes, Message& message) {
  if (bytes.size() <= std::numeric_limits<int>::max() &&
      message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return RefuseUnknownFields(message, "");
  }
  const Descriptor& descriptor = *message.GetDescriptor();
  RETURN_IF_ERROR(FindInvalidText(bytes, descriptor, ""));
  return BadField(kWholeRequest, Reason::kMalformed,
                  absl::StrCat("the bytes are not a ", descriptor.full_name()));
}

}  // namespace linnet::server
