#include "model/runtime/tokenizer/apostrophes.h"

#include "absl/strings/match.h"
#include "model/runtime/tokenizer/protected_spans.h"

namespace linnet::model {

size_t EndOfApostrophe(absl::string_view text, size_t at) {
  constexpr absl::string_view kSpellings[] = {"&#39;",  "&#x27;",  "&#8217;", "&#x2019;",
                                              "&apos;", "&rsquo;", "\\'",     "''"};
  if (!absl::StrContains("&\\'", text[at])) return at;
  for (const absl::string_view spelling : kSpellings) {
    const size_t end = at + spelling.size();
    if (absl::StartsWith(text.substr(at), spelling) &&
        TouchesWord(text, static_cast<int>(at), /*before=*/true) &&
        TouchesWord(text, static_cast<int>(end), /*before=*/false))
      return end;
  }
  return at;
}

}  // namespace linnet::model
