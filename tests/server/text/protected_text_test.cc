// Protected spans: what the model must not change comes back, and warnings say what differs.
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/request/protected_patterns.h"
#include "tests/server/text/two_models_fixture.h"

namespace linnet::server {
namespace {

using linnet::v1::TranslateRequest;
using linnet::v1::TranslateResponse;
using linnet::v1::Translation;
using linnet::v1::Warning;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Found(const std::string& text,
                               const std::vector<std::string>& patterns = {}) {
  const google::protobuf::RepeatedPtrField<std::string> own(patterns.begin(), patterns.end());
  const auto made = ProtectedPatterns::Make(own);
  EXPECT_THAT(made, IsOk());
  std::vector<std::string> found;
  for (const auto& [begin, end, kind] : (*made)->Find(text))
    found.push_back(text.substr(begin, end - begin));
  return found;
}

// Noise engines write none of a text, so that everything is forced.
struct NoisyServer : TwoModels {
  NoisyServer() : TwoModels(Noise(3)) {}
};

std::vector<std::string> Reasons(const Translation& translation) {
  std::vector<std::string> reasons;
  for (const Warning& warning : translation.warnings()) reasons.push_back(warning.reason());
  return reasons;
}

TEST(ProtectedTextTest, FindsVariables) {
  EXPECT_THAT(Found("Hello %s, {count} of {{name}}: 100% of it, 5% off"),
              ElementsAre("%s", "{count}", "{{name}}"));
  EXPECT_THAT(Found("{n, plural, one {# file} other {# files}} in ${dir} by %(user)s %1$s %5.2f"),
              ElementsAre("{n, plural, one {# file} other {# files}}", "${dir}", "%(user)s", "%1$s",
                          "%5.2f"));
  EXPECT_THAT(Found("{} {0:>8.2f} {name!r:>10} {:?} {as prose} $t(common.ok)"),
              ElementsAre("{}", "{0:>8.2f}", "{name!r:>10}", "{:?}", "$t(common.ok)"));
  EXPECT_THAT(Found("{% if a.b == 'c' %}Dear <%= name %>{% endif %}, 5 % of <10 %>"),
              ElementsAre("{% if a.b == 'c' %}", "<%= name %>", "{% endif %}"));
}

TEST(ProtectedTextTest, FindsVariablesOfFrameworks) {
  EXPECT_THAT(
      Found("Hi {!! $name !!}, @{user}, $name, $NAME$, %NAME%, :count and [[+x]]: it"),
      ElementsAre("{!! $name !!}", "@{user}", "$name", "$NAME$", "%NAME%", ":count", "[[+x]]"));
  EXPECT_THAT(Found("Dear %%first_name%%, ##order## is 100%% sure: 50% de"),
              ElementsAre("%%first_name%%", "##order##", "%%"));
  EXPECT_THAT(Found("%1 of %L2, %Y-%m-%d, %d%%, {/name} {@name} {a|upper} /home/$USER/.a"),
              ElementsAre("%1", "%L2", "%Y-%m-%d", "%d", "%%", "{/name}", "{@name}", "{a|upper}",
                          "/home/$USER/.a"));
  EXPECT_THAT(
      Found("Open <file> or <<name>>, <a href=\"x y\"> it </a>, `ls -l` &nbsp; &#39;"),
      ElementsAre("<file>", "<<name>>", "<a href=\"x y\">", "</a>", "`ls -l`", "&nbsp;", "&#39;"));
  EXPECT_THAT(Found("a <b and c> d, 5 < 6 > 4, $5, US$ 5, AT&T; so: it, 100%, 10:30, O`Neil `s, "
                    "[x] 50%x of it; a:b, don&#39;t, R&Ds; it''s, '' or \\o/ a\\b, $a is $ or 5$"),
              IsEmpty());
}

TEST(ProtectedTextTest, FindsMarksOfMarkupLanguages) {
  EXPECT_THAT(Found("%(name)r, %S, %m, %<name>s [% name %]"),
              ElementsAre("%(name)r", "%S", "%m", "%<name>s", "[% name %]"));
  EXPECT_THAT(Found("Union of ``X, Y``, `text <https://a.org>`_ and :func:`dir`"),
              ElementsAre("``X, Y``", "`text <https://a.org>`_", ":func:", "`dir`"));
  EXPECT_THAT(Found("From $1, at $2. '''Note:''' ''It'' costs $3.20"),
              ElementsAre("$1", "$2", "'''", "'''", "''", "''"));
  EXPECT_THAT(Found("It costs $5, not $3 or $1.50"), IsEmpty());
  EXPECT_THAT(
      Found(
          "Let $x_i$ and $(s, t)$ of \\emph{a b} be \\(n < 1\\), $5 or $6; $$a$$, $is the sum 5$"),
      ElementsAre("$x_i$", "$(s, t)$", "\\emph", "\\(n < 1\\)", "$$a$$", "$is"));
  EXPECT_THAT(Found("It is.\\n\\nTry on C:\\new, a&lt;b, caf&eacute;, Theme&#8230;"),
              ElementsAre("\\n\\n", "C:\\new", "&lt;", "&eacute;", "&#8230;"));
}

TEST(ProtectedTextTest, EscapedLineEndsEndSegments) {
  TextFixture fixture;
  TranslateResponse response;
  const std::string text = "The cat\\n\\nThe dog";
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
  EXPECT_EQ(response.translations(0).text(), text);
  EXPECT_EQ(response.translations(0).segments_size(), 2);
}

TEST(ProtectedTextTest, FindsTagsAtWords) {
  const ProtectedPatterns patterns;
  const auto tags = [&](const std::string& text) {
    std::vector<std::string> found;
    for (const auto& [begin, end, kind] : patterns.Find(text)) {
      const bool tag = kind == ProtectedPatterns::Match::Kind::kTag;
      found.push_back(absl::StrCat(tag ? "" : "= ", text.substr(begin, end - begin)));
    }
    return found;
  };
  EXPECT_THAT(tags("{% if a %}The{%- else -%}a{% trans %}{% blocktrans %}b {% url 'c' %} {# d #}"),
              ElementsAre("{% if a %}", "{%- else -%}", "{% trans %}", "{% blocktrans %}",
                          "= {% url 'c' %}", "{# d #}"));
  EXPECT_THAT(
      tags("<% if a %>The<% else %>b<%- end %>, <%= name %>, <%- name %>"),
      ElementsAre("<% if a %>", "<% else %>", "<%- end %>", "= <%= name %>", "= <%- name %>"));
  EXPECT_THAT(
      tags("<?php if ($a > 1): ?>The<?php } ?>b <?= $name ?> <?php echo 5 ?>"),
      ElementsAre("<?php if ($a > 1): ?>", "<?php } ?>", "= <?= $name ?>", "= <?php echo 5 ?>"));
  EXPECT_THAT(tags("{{#if a}}The{{else}}b{{/if}} {{~#each c}} {{if .X}}{{! d }} {{name}} {{end}}"),
              ElementsAre("{{#if a}}", "{{else}}", "{{/if}}", "{{~#each c}}", "{{if .X}}",
                          "{{! d }}", "= {{name}}", "= {{end}}"));
  EXPECT_THAT(tags("<#if a>The</#if> {#if a}b{:else}c{/if} {if $a}b{else}c{/if} {a} {if you like}"),
              ElementsAre("<#if a>", "</#if>", "{#if a}", "{:else}", "{/if}", "{if $a}", "{else}",
                          "{/if}", "= {a}"));
  EXPECT_THAT(
      tags("[b]A [url=%s]b[/url][/b] a[i] [list][*]c[/list] [1] [s] [[d]]"),
      ElementsAre("[b]", "[url=%s]", "[/url]", "[/b]", "[list]", "[*]", "[/list]", "= [[d]]"));
  EXPECT_THAT(tags("It is.\\nIt\\tIs a tab (\\t), &lt;b&gt; &amp; '''a'''"),
              ElementsAre("\\n", "\\t", "= \\t", "&lt;", "&gt;", "= &amp;", "'''", "'''"));
  EXPECT_THAT(tags("<b>it.</b> <0>is</0>a<x/>b, <a b=\"c\"> <h1> open <file> <d/> or <<name>>"),
              ElementsAre("<b>", "</b>", "<0>", "</0>", "<x/>", "<a b=\"c\">", "<h1>", "= <file>",
                          "= <d/>", "= <<name>>"));
}

TEST(ProtectedTextTest, WordsAtTagsAreTranslated) {
  TextFixture fixture;  // its model copies words
  for (const std::string text :
       {"{% if x %}The cat{% endif %}", "<% if x %>The cat <% end %>", "{{#if x}} The cat{{/if}}",
        "<?php if ($x): ?>The cat.<?php endif ?>", "<b>The cat</b>"}) {
    TranslateResponse response;
    ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
    const Translation& translation = response.translations(0);
    EXPECT_EQ(translation.text(), text);
    EXPECT_THAT(translation.warnings(), IsEmpty()) << text;
    ASSERT_EQ(translation.segments_size(), 1);
    const auto& segment = translation.segments(0);
    EXPECT_EQ(text.substr(segment.source_begin(), 7), "The cat");
    EXPECT_LE(segment.source_end() - segment.source_begin(), 8) << "the tags are at its ends";
    EXPECT_FALSE(segment.copied()) << text;
  }
}

TEST(ProtectedTextTest, SentencesEndAtTags) {
  TextFixture fixture;
  const std::string text =
      "{% if a %}\n<b>The dog.</b> A cat{% if b %}: a fox.{% else %}Mr.<i> Bird</i>.<br/>";
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
  EXPECT_EQ(response.translations(0).text(), text);
  std::vector<std::string> segments;
  for (const auto& segment : response.translations(0).segments())
    segments.push_back(
        text.substr(segment.source_begin(), segment.source_end() - segment.source_begin()));
  EXPECT_THAT(segments, ElementsAre("The dog.", "A cat{% if b %}: a fox.", "Mr.<i> Bird</i>."));
  TranslateResponse tag;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({"{% if a %}"}), tag), IsOk());
  EXPECT_EQ(tag.translations(0).text(), "{% if a %}") << "nothing else";
}

TEST(ProtectedTextTest, TagsOfTemplatesKeepTheirPlaceAmongElements) {
  TextFixture fixture;
  for (const std::string text :
       {"<p><a>{% if a %}The</a> cat{% endif %}</p>", "<p>The <a>cat{% endif %}</a></p>",
        "<b>{% set a = { 'b': {c} } %}The</b> cat {{ d | merge({e: 1}) }}",
        "The {{PLURAL:$1|cat of {{SITE}}|cats}}"}) {
    TranslateRequest request = ToGerman({text});
    request.set_mime_type("text/html");
    TranslateResponse response;
    ASSERT_THAT(fixture.Call(&TextCalls::Translate, request, response), IsOk());
    EXPECT_EQ(response.translations(0).text(), text);
  }
}

TEST(ProtectedTextTest, EndingsBelongToVariablesAndWordsDoNot) {
  NoisyServer server;  // its model translates all words
  const auto is_kept = [&](const std::string& text, const std::string& part) {
    const std::string answer = server.Translated(ToGerman({text})).translations(0).text();
    return answer.find(part) != std::string::npos;
  };
  EXPECT_TRUE(is_kept("Wait %ds here", "%ds"));
  EXPECT_TRUE(is_kept("Signal SIG%s here", "SIG%s"));
  EXPECT_TRUE(is_kept("Open lib%sname.so here", "lib%sname"));
  EXPECT_FALSE(is_kept("%sPlease remove it", "Please"));
  EXPECT_FALSE(is_kept("It has failed%s", "failed"));
}

TEST(ProtectedTextTest, TagsWithinASentenceKeepTheirBlanks) {
  TextFixture fixture;
  const std::string text =
      "Dear {% if a %}Mr{% else %} Ms {% endif %}dog, <b>see</b> <i>it</i>: {% if b %}a{% endif "
      "%}!";
  TranslateResponse response;
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
  EXPECT_EQ(response.translations(0).text(), text);
  EXPECT_THAT(response.translations(0).warnings(), IsEmpty());
}

TEST(ProtectedTextTest, FindsLinesToFillIn) {
  EXPECT_THAT(Found("Name: ____ Date: ___/___/____ a___b Page ..... 5 and so on..."),
              ElementsAre("____", "___/___/____", "....."));
}

TEST(ProtectedTextTest, FindsAddresses) {
  EXPECT_THAT(Found("See https://a.com/b?c=d&e=f, (http://x.org/a_(b)) and www.test.de."),
              ElementsAre("https://a.com/b?c=d&e=f", "http://x.org/a_(b)", "www.test.de"));
  EXPECT_THAT(Found("Write to contact@example.com by Friday, @anna, about #release and #1"),
              ElementsAre("contact@example.com", "@anna", "#release"));
  EXPECT_THAT(Found("/etc/passwd, ./b and/or ~/a.txt he/she 1/2 km/h"),
              ElementsAre("/etc/passwd", "./b", "~/a.txt"));
}

TEST(ProtectedTextTest, FindsCodesAndNoAmounts) {
  EXPECT_THAT(
      Found("DE89 3704 0044 0532 0130 00. 4111 1111 1111 1111, BE0768880101; +49 30 1234567"),
      ElementsAre("DE89 3704 0044 0532 0130 00", "4111 1111 1111 1111", "BE0768880101",
                  "+49 30 1234567"));
  EXPECT_THAT(Found("192.168.1.1 1.2.3 v2.0 x86_64 123456"),
              ElementsAre("192.168.1.1", "1.2.3", "v2.0", "x86_64", "123456"));
  EXPECT_THAT(Found("Call imap_body() and foo_bar-1.2, LOG_INFO of _a word_ or Leser_innen, a-b"),
              ElementsAre("imap_body", "foo_bar-1.2", "LOG_INFO"));
  EXPECT_THAT(Found("12.05.2024 1.234.567 1,234.56 10:30 10 000 000 12345 20th 5kg 1990s 500MB"),
              IsEmpty());
}

TEST(ProtectedTextTest, FindsPatternsOfTheRequest) {
  EXPECT_THAT(Found("Ask ACME Corp or Acme, not x%s.", {"(?i)acme( corp)?\\b", "^Ask", "$"}),
              ElementsAre("%s", "ACME Corp", "Acme", "Ask"));
  EXPECT_THAT(Found("K\u00FChe", {"K\\C"}), ElementsAre("K\u00FC")) << "whole characters";
  EXPECT_THAT(Found("aXbXc", {"X*"}), ElementsAre("X", "X"));
  // One that begins anywhere in a long text is found whole, unless it is too long itself.
  for (const int before : {0, 200, 255, 256, 257, 500, 512, 700}) {
    const std::string text =
        absl::StrCat(std::string(before, ','), " x", std::string(250, 'y'), " ");
    EXPECT_THAT(Found(text, {"\\bxy+\\b"}), ElementsAre(text.substr(before + 1, 251)));
  }
  EXPECT_EQ(Found(std::string(600, 'x'), {"x+"}).front().size(), 512U);
}

TEST(ProtectedTextTest, PatternThatMatchesTooOftenCopiesTheRest) {
  std::string text;
  for (int i = 0; i < 300; ++i) absl::StrAppend(&text, "a b ");
  const std::vector<std::string> found = Found(text, {"a"});
  ASSERT_EQ(found.size(), 257U);
  EXPECT_EQ(found.back(), text.substr(4 * 256));
}

TEST(ProtectedTextTest, PatternsOfTheRequestComeBack) {
  NoisyServer server;
  TranslateRequest request = ToGerman({"Buy two AcmeDogs, now."});
  request.add_protected_patterns("Acme");
  const Translation translation = server.Translated(request).translations(0);
  EXPECT_NE(translation.text().find("AcmeDogs"), std::string::npos) << translation.text();
  ASSERT_THAT(Reasons(translation), ::testing::Contains("SPAN_FORCED"));
  EXPECT_EQ(translation.warnings(0).metadata().at("sourceRanges"), "8-16");
}

TEST(ProtectedTextTest, TimeIsLinearInHostileText) {
  for (const std::string part :
       {"{,{a}", "a1", "%s", "{{ 123456 ", "a@", "/a", "http://a)", "[b]", "[url=a]", "[*]", "[/b]",
        "{% 123456 {a ", "[% 123456 ", "\\( 123456 \\a ", "$a b$ c ", "$$ 123456 ", "``123456 ",
        "''123456 "}) {
    std::string text;
    while (text.size() < 200'000) text += part;
    Found(text);  // a test that takes minutes fails
  }
  std::string text;  // RE2 searches it in its slowest way
  for (std::mt19937 random(1); text.size() < 4096;) text += "ab"[random() % 2];
  for (int i = 0; i < 4; ++i) Found(text, std::vector<std::string>(16, ".*a.{25}c|."));
}

TEST(ProtectedTextTest, SpansThatTheModelLeavesOutAreForcedAndReported) {
  NoisyServer server;
  const std::string text = "Write to contact@example.com, {name}, by Friday.";
  const Translation translation = server.Translated(ToGerman({text})).translations(0);
  for (const std::string part : {"contact@example.com", "{name}"}) {
    const size_t at = translation.text().find(part);
    ASSERT_NE(at, std::string::npos) << translation.text();
    EXPECT_EQ(translation.text().find(part, at + 1), std::string::npos) << translation.text();
  }
  ASSERT_THAT(Reasons(translation), ::testing::Contains("SPAN_FORCED"));
  EXPECT_EQ(translation.warnings(0).metadata().at("sourceRanges"), "9-28 30-36");
}

TEST(ProtectedTextTest, RangesOfAFragmentAreThoseOfItsBytes) {
  NoisyServer server;
  const std::string text =
      "<h1>Hi &amp; ho</h1><p>Write to <b>contact@example.com</b>, {name}.</p>";
  TranslateRequest request = ToGerman({text});
  request.set_mime_type("text/html");
  const Translation translation = server.Translated(request).translations(0);
  ASSERT_THAT(Reasons(translation), ::testing::Contains("SPAN_FORCED"));
  for (const auto& warning : translation.warnings()) {
    if (warning.reason() != "SPAN_FORCED") continue;
    const size_t address = text.find("contact@"), name = text.find("{name}");
    const std::string ranges = absl::StrCat(address, "-", address + 19, " ", name, "-", name + 6);
    EXPECT_EQ(warning.metadata().at("sourceRanges"), ranges);
    EXPECT_THAT(warning.message(), ::testing::HasSubstr(ranges));
  }
}

// The server reads the start of a long sentence first, to see whether that alone is too long.
TEST(ProtectedTextTest, SpansBehindTheStartOfALongTextAreFound) {
  for (const std::string fragment : {"-a@b.c-", "\"", "see a@b.c {x} "}) {
    TextFixture fixture;
    TranslateResponse response;
    std::string text;
    while (text.size() < 40'000) text += fragment;
    const absl::Status status = fixture.Call(&TextCalls::Translate, ToGerman({text}), response);
    EXPECT_THAT(status, IsOk()) << fragment;
    EXPECT_EQ(response.translations(0).text(), text);
  }
}

TEST(ProtectedTextTest, SentenceIsNotSplitInsideASpan) {
  TextFixture fixture;
  TranslateResponse response;
  const std::string text =
      "See {n, plural, one {A file. It is old} other {Files. All}} now. Go on.";
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
  EXPECT_EQ(response.translations(0).segments_size(), 2);
  EXPECT_EQ(response.translations(0).text(), text);
}

TEST(ProtectedTextTest, RandomSpansComeBackOnceWhateverTheModelSays) {
  NoisyServer server;
  std::mt19937 random(5);
  const char* const asked = std::getenv("LINNET_PROTECTED_TEXTS");
  const int texts = asked == nullptr ? 40 : std::atoi(asked);
  const std::vector<std::string> words = {"the", "dog", "runs.", "A", "bird", "(sings)"};
  for (int i = 0; i < texts; ++i) {
    std::string text = "Go";
    std::vector<std::string> spans;
    for (uint32_t count = 1 + random() % 9; spans.size() < count;) {
      absl::StrAppend(&text, " ", words[random() % words.size()]);
      if (random() % 2 == 0) continue;
      spans.push_back(absl::StrCat(random() % 2 == 0 ? "{v" : "http://a.b/", 1000 + spans.size()));
      if (spans.back()[0] == '{') spans.back() += '}';
      absl::StrAppend(&text, " ", spans.back());
    }
    const std::string answer =
        server.Translated(ToGerman({absl::StrCat(text, ".")})).translations(0).text();
    for (const std::string& span : spans) {
      const size_t at = answer.find(span);
      ASSERT_NE(at, std::string::npos) << text << " -> " << answer;
      ASSERT_EQ(answer.find(span, at + 1), std::string::npos) << text << " -> " << answer;
    }
  }
}

TEST(ProtectedTextTest, FactsThatDifferAreReportedAndCounted) {
  NoisyServer server;
  const Translation translation =
      server.Translated(ToGerman({"I have 7391 \"dogs\"."})).translations(0);
  ASSERT_THAT(Reasons(translation), ElementsAre("FACTS_DIFFER"));
  EXPECT_THAT(translation.warnings(0).metadata().at("sourceRanges"), ::testing::HasSubstr("7-11"));
  EXPECT_THAT(server.metrics.Text(),
              ::testing::HasSubstr("linnet_warnings_total{reason=\"FACTS_DIFFER\"} 1\n"));
}

TEST(ProtectedTextTest, AnswerThatKeepsEverythingHasNoWarning) {
  TextFixture fixture;
  TranslateResponse response;
  const std::string text = "I have 3 🐱, 1,234.56 \u00B5g (about %d) and 2 🐶.";
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({text}), response), IsOk());
  EXPECT_EQ(response.translations(0).text(), text);
  EXPECT_THAT(response.translations(0).warnings(), IsEmpty());
  response.Clear();
  ASSERT_THAT(fixture.Call(&TextCalls::Translate, ToGerman({"I don&#39;t have 3."}), response),
              IsOk());
  EXPECT_EQ(response.translations(0).text(), "I don't have 3.");
  EXPECT_THAT(response.translations(0).warnings(), IsEmpty());
}

}  // namespace
}  // namespace linnet::server
