#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/cli.h"
#include "client/cli/commands.h"
#include "client/cli/text/print.h"
#include "client/cli/text/text_parts.h"
#include "client/command/text/text_source.h"
#include "client/command/text/white_space.h"
#include "client/library/client.h"

namespace linnet::client {

// For a terminal: reads texts, sends them one at a time and writes the stable part of each answer
// as soon as it arrives. `Kind` is Translating or Summarizing of text_kinds.h.
template <typename Kind>
int StreamTexts(Client& client, const TextOptions& options, const typename Kind::Request& prototype,
                const Environment& environment) {
  std::ostream& out = environment.out;
  TextSource source(options.input, environment.in, environment.stop_event);
  int64_t answered = 0;
  while (true) {
    const absl::StatusOr<std::optional<Text>> read = source.Next();
    if (environment.stop.stop_requested()) {
      return Fail(absl::CancelledError("cancelled"), AnsweredNote(answered), environment);
    }
    if (!out) return FailToWrite(errno, environment);
    if (!read.ok()) return FailLocally(read.status(), environment);
    if (!read->has_value()) return kExitOk;
    const Text& text = **read;
    if (!text.problem.ok()) return FailLocally(text.problem, environment);
    if (IsBlank(text)) {
      out << text.content << text.ending << std::flush;
      continue;
    }
    size_t written = 0;
    std::string notes;
    const std::vector<absl::string_view> first = Kind::Parts(text.content, prototype);
    std::deque<absl::string_view> parts(first.begin(), first.end());
    typename Kind::Request settings = prototype;
    while (!parts.empty()) {
      const absl::string_view part = parts.front();
      parts.pop_front();
      if (IsWhiteSpace(part)) {
        out << part;
        continue;
      }
      typename Kind::Request request = settings;
      Text sent;
      sent.content = std::string(part);
      Kind::Add(sent, &request);
      const auto print = [&](const v1::TextPart& said) {
        const std::string piece = KeepLineCount(said.text(), text);
        written += piece.size();
        return static_cast<bool>(out << piece << std::flush);
      };
      const auto response = (client.*Kind::kStream)(request, print, options.call);
      if (!out) return FailToWrite(errno, environment);
      if (NeedsSmallerParts(response.status())) {  // before anything was written
        const std::vector<absl::string_view> halves =
            Kind::Parts(part, prototype, (part.size() + 1) / 2);
        if (halves.size() > 1) {
          parts.insert(parts.begin(), halves.begin(), halves.end());
          continue;
        }
      }
      if (!response.ok()) {
        std::string note = AnsweredNote(answered);
        if (written > 0) {
          out << std::endl;  // the error gets lines of its own
          note = absl::StrCat("\n  of the answer to ", text.name, ", the first ", written,
                              " bytes are written", note);
        }
        return Fail(response.status(), note, environment);
      }
      Kind::UsePartBefore(*response, &settings);
      if (notes.empty()) notes = Kind::Note(*response, 0);
    }
    out << text.ending << std::flush;
    if (!notes.empty() && !options.quiet)
      environment.err << "linnet: " << text.name << ": " << notes << "\n";
    ++answered;
  }
}

}  // namespace linnet::client
