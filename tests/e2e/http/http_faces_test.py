"""Each API with its own client, unchanged, or with requests as its clients send them."""

import html
import json
import re
import sqlite3
import subprocess
import sys

import deepl
import libretranslatepy
import pytest

TEXT = "one two three"
TAGGED = "<p>one <b>two</b> three</p>"


@pytest.fixture(scope="module")
def answer(server) -> str:
    """What the server says to TEXT: random words."""
    return server.translate(TEXT).translations[0].text


@pytest.fixture
def libretranslate(door):
    return libretranslatepy.LibreTranslateAPI(door.url)


@pytest.fixture
def translator(door):
    return deepl.DeepLClient("key", server_url=door.url)


def test_libretranslatepy_translates(libretranslate, answer):
    assert libretranslate.translate(TEXT, "en", "de") == answer


def test_libretranslatepy_lists_languages(libretranslate):
    """A GET with a form in its body."""
    assert libretranslate.languages() == [{"code": "en", "name": "English", "targets": ["de"]}]


def test_libretranslatepy_detects(libretranslate):
    (first, *_) = libretranslate.detect("Guten Tag, wie geht es Ihnen heute Morgen?")
    assert first["language"] == "de"
    assert 50 < first["confidence"] <= 100


@pytest.mark.parametrize("form", ["q={}&source=en&target=de", {"source": "en", "target": "de"}])
def test_libretranslate_takes_forms_and_json(door, answer, form):
    body = form.format(TEXT) if isinstance(form, str) else {**form, "q": TEXT}
    assert door.post("/translate", body).json == {
        "translatedText": answer,
        "detectedLanguage": {"confidence": 100, "language": "en"},
    }


def test_libretranslate_answers_a_list_with_lists(door, answer):
    texts = [TEXT, " ", TEXT, "\ufeff"]
    said = door.post("/translate", {"q": texts, "source": "en", "target": "de"}).json
    assert said["translatedText"] == [answer, " ", answer, "\ufeff"]
    assert len(said["detectedLanguage"]) == 4


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/translate", {"q": TEXT, "source": "de", "target": "de"}),
        ("/v2/translate", {"text": [TEXT], "source_lang": "DE", "target_lang": "de"}),
        ("/language/translate/v2", {"q": [TEXT], "source": "de", "target": "de"}),
        ("/v2/translate", {"text": [TEXT], "source_lang": "EN", "target_lang": "EN-US"}),
    ],
)
def test_a_text_in_the_target_language_comes_back(door, path, body):
    said = door.post(path, body)
    assert said.status == 200
    assert f'"{TEXT}"' in said.body.decode()
    assert "ALREADY_IN_TARGET_LANGUAGE" in said.body.decode()


def test_another_script_is_another_language(door):
    body = {"text": [TEXT], "source_lang": "ZH-HANS", "target_lang": "ZH-HANT"}
    assert door.post("/v2/translate", body).status == 400
    body = {"text": [TEXT], "source_lang": "SR", "target_lang": "SR-RS"}
    assert door.post("/v2/translate", body).status == 400


ENGLISH = "A dog runs over the street and looks for his friend."
FRENCH = "Bonjour tout le monde, comment allez-vous ?"


# The field of the source language, by that of the texts.
FIELDS = {"q": "source", "text": "source_lang", "texts": "from", "text_list": "source_lang"}


def test_a_text_in_a_list_that_no_model_reads_comes_back(door, server):
    """LibreTranslate and DeepL fail for no text of a list either. The warning names the text, as an
    error does if there are no others."""
    answer = server.translate(ENGLISH).translations[0].text
    for path, body, texts in (
        ("/translate", {"source": "auto", "target": "de"}, "q"),
        ("/v2/translate", {"target_lang": "DE"}, "text"),
        ("/language/translate/v2", {"target": "de", "format": "text"}, "q"),
        ("/translate", {"to": "de"}, "texts"),
        ("/translate", {"target_lang": "de"}, "text_list"),
    ):
        said = door.post(path, {**body, texts: ["", FRENCH, ENGLISH, FRENCH]})
        assert said.status == 200, said.body
        found = json.dumps(said.json, ensure_ascii=False)
        assert found.count(f'"{FRENCH}"') == found.count("MODEL_NOT_FOUND") == 2, found
        assert json.dumps(answer, ensure_ascii=False) in found
        for number in (1, 3):
            assert f'{texts}[{number}] seems to be in \\"fr\\", from which no model' in found
        for sent, named in (
            ([FRENCH, FRENCH], f'{texts}[0] seems to be in \\"fr\\": no model'),
            (["", FRENCH], f"{texts}[1]: source"),
            ([FRENCH], 'the text seems to be in \\"fr\\": no model'),
        ):
            said = door.post(path, {**body, texts: sent})
            assert said.status in (400, 404)
            assert named.replace("source", FIELDS[texts]) in said.body.decode(), said.body


@pytest.mark.parametrize("texts", ["texts", "source"])
def test_it_is_an_error_where_nothing_can_tell_of_it(door, texts):
    body = {texts: [ENGLISH, FRENCH], "src_lang": "", "tgt_lang": "de"}
    said = door.post("/translate", body)
    assert said.status == 404
    assert said.json["error"].startswith(f'{texts}[1] seems to be in "fr", from')


def test_libretranslate_gives_alternatives(door, answer):
    body = {"q": TEXT, "source": "en", "target": "de", "alternatives": 3}
    said = door.post("/translate", body).json
    assert said["translatedText"] == answer
    assert 1 <= len(said["alternatives"]) <= 3
    assert answer not in said["alternatives"]


def test_libretranslate_html_without_tags_is_unescaped(door, server):
    said = door.post(
        "/translate", {"q": "a &amp; b", "source": "en", "target": "de", "format": "html"}
    )
    plain = server.translate("a & b").translations[0].text
    assert said.json["translatedText"] == plain.replace("&", "&amp;").replace("<", "&lt;").replace(
        ">", "&gt;"
    )


@pytest.mark.parametrize(
    ("path", "body", "read"),
    [
        ("/translate", {"q": TAGGED, "format": "html"}, lambda said: said["translatedText"]),
        (
            "/v2/translate",
            {"text": [TAGGED], "tag_handling": "html"},
            lambda said: said["translations"][0]["text"],
        ),
        (
            "/language/translate/v2",
            {"q": [TAGGED]},
            lambda said: said["data"]["translations"][0]["translatedText"],
        ),
    ],
)
def test_tags_return(door, answer, path, body, read):
    languages = {"source": "en", "target": "de", "source_lang": "EN", "target_lang": "DE"}
    said = read(door.post(path, {**body, **languages}).json)
    assert html.unescape(re.sub("</?[bp]>", "", said)) == answer
    assert re.findall("</?[bp]>", said) == ["<p>", "<b>", "</b>", "</p>"]


def test_libretranslate_settings(door):
    said = door.get("/frontend/settings").json
    assert said.pop("language") == {
        "source": {"code": "en", "name": "English"},
        "target": {"code": "de", "name": "German"},
    }
    assert ".srt" in said.pop("supportedFilesFormat")
    assert said == {
        "apiKeys": False,
        "charLimit": -1,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "keyRequired": False,
        "suggestions": False,
    }


def test_deepl_translates(translator, answer):
    found = translator.translate_text([TEXT, TEXT], source_lang="EN", target_lang="DE")
    assert [it.text for it in found] == [answer, answer]
    assert [it.billed_characters for it in found] == [len(TEXT)] * 2
    assert found[0].detected_source_lang == "EN"


def test_deepl_lists_languages(translator):
    """The targets are asked for by a GET with a form in its body."""
    assert [it.code for it in translator.get_source_languages()] == ["EN"]
    assert [it.code for it in translator.get_target_languages()] == ["DE"]


def test_deepl_usage_has_no_limit_in_reach(translator):
    assert not translator.get_usage().any_limit_reached


def test_deepl_keeps_glossaries(translator, door):
    entries = deepl.api_data.MultilingualGlossaryDictionaryEntries
    made = translator.create_multilingual_glossary("g", [entries("EN", "DE", {"two": "zwo"})])
    found = translator.translate_text(TEXT, source_lang="EN", target_lang="DE", glossary=made)
    assert "zwo" in found.text
    translator.update_multilingual_glossary_dictionary(made, entries("EN", "DE", {"one": "eins"}))
    read = translator.get_multilingual_glossary_entries(made, "EN", "DE")
    assert read.dictionaries[0].entries == "two\tzwo\none\teins"  # the client leaves it as it is
    assert [it.name for it in translator.list_multilingual_glossaries()] == ["g"]
    other = deepl.DeepLClient("another", server_url=door.url)
    assert other.list_multilingual_glossaries() == []
    with pytest.raises(deepl.GlossaryNotFoundException):
        other.get_multilingual_glossary(made.glossary_id)
    translator.delete_multilingual_glossary(made)
    assert translator.list_multilingual_glossaries() == []


def test_deepl_applies_several_glossaries_in_order(translator, door):
    made = [
        translator.create_glossary("g", "EN", "DE", terms)
        for terms in ({"two": "zwo"}, {"two": "zwei", "one": "eins"})
    ]
    languages = {"source_lang": "EN", "target_lang": "DE"}
    said = translator.translate_text(TEXT, glossary_ids=made, **languages).text
    assert "zwo" in said
    assert "eins" in said
    ids = [it.glossary_id for it in made]
    form = f"text={TEXT}&source_lang=EN&target_lang=DE&glossary_ids={','.join(ids)}"
    assert (
        door.post("/v2/translate", form, Authorization="key").json["translations"][0]["text"]
        == said
    )
    many = {"text": [TEXT], **languages, "glossary_ids": ids * 3}
    refused = door.post("/v2/translate", many, Authorization="key")
    assert refused.status == 400
    assert refused.json["message"] == "glossary_ids names 6, at most 5 are read"
    for one in made:
        translator.delete_glossary(one)


def test_deepl_glossaries_of_version_2(translator):
    made = translator.create_glossary("old", "EN", "DE", {"two": "zwo"})
    assert translator.get_glossary_entries(made) == {"two": "zwo"}
    assert [it.glossary_id for it in translator.list_glossaries()] == [made.glossary_id]
    translator.delete_glossary(made)


def test_deepl_glossaries_of_a_caller_are_a_quota(open_door, server, tmp_path):
    """456 ends deepl's client, which sends 429 five times again."""
    from linnet_http import glossaries

    file = tmp_path / "glossaries"
    door = open_door(server.grpc, "--glossaries", str(file))
    owner = glossaries.Glossaries._owner("key")
    with sqlite3.connect(file) as store:
        store.executemany(
            "INSERT INTO glossary VALUES (?, ?, '', '')",
            [(str(number), owner) for number in range(glossaries.MAX_GLOSSARIES)],
        )
    translator = deepl.DeepLClient("key", server_url=door.url)
    with pytest.raises(deepl.QuotaExceededException, match="1000 glossaries, which is the limit"):
        translator.create_glossary("one more", "EN", "DE", {"two": "zwo"})
    assert 'face="deepl",status="456"} 1.0' in door.get("/metrics").body.decode()
    deepl.DeepLClient("another", server_url=door.url).create_glossary("a", "EN", "DE", {"b": "c"})


@pytest.mark.parametrize(
    ("form", "entries", "message"),
    [
        ("tsv", "one eins", "with a tab between in line 1"),
        ("tsv", "one\teins\ntwo\t", "with a tab between in line 2"),
        ("tsv", "one\teins\tuno", "with a tab between in line 1"),
        ("csv", "one;eins", "with a comma between in line 1"),
        ("csv", '"o\tne",eins', "has a tab or a line break in a term in line 1"),
        ("csv", '"o\nne",eins', "has a tab or a line break in a term in line 1"),
        ("csv", f'one,"{"x" * 140_000}"', "cannot be read as csv: field larger than"),
        ("tsv", "one\teins\none\tuno", "twice, the second time in line 2"),
    ],
)
def test_deepl_glossaries_that_cannot_be_read(door, form, entries, message):
    pair = {"source_lang": "en", "target_lang": "de"}
    body = {"name": "g", **pair, "entries": entries, "entries_format": form}
    said = door.post("/v2/glossaries", body)
    assert said.status == 400
    assert message in said.json["message"]


def test_deepl_glossaries_have_the_columns_of_csv(door):
    pair = {"source_lang": "en", "target_lang": "de"}
    entries = '\ufefftwo,zwo,en,de\n"a, b","c"\n'
    body = {"name": "g", **pair, "entries": entries, "entries_format": "csv"}
    made = door.post("/v2/glossaries", body).json
    read = door.get(f"/v2/glossaries/{made['glossary_id']}/entries")
    assert read.body == b"two\tzwo\na, b\tc"


def test_deepl_glossaries_need_a_model_for_their_languages(translator, door):
    """Only one model can read a glossary, so a third language between them does not help."""
    entries = deepl.api_data.MultilingualGlossaryDictionaryEntries
    refused = "no model translates en to fr directly"
    with pytest.raises(deepl.DeepLException, match=refused):
        translator.create_glossary("g", "EN", "FR", {"two": "deux"})
    made = translator.create_multilingual_glossary("g", [entries("EN", "DE", {"two": "zwo"})])
    for change in (
        translator.update_multilingual_glossary_dictionary,
        translator.replace_multilingual_glossary_dictionary,
    ):
        with pytest.raises(deepl.DeepLException, match=refused):
            change(made, entries("EN", "FR", {"two": "deux"}))
    translator.delete_multilingual_glossary(made)


def test_deepl_says_what_it_ignored(door, answer):
    said = door.post("/v2/translate", f"text={TEXT}&source_lang=EN&target_lang=DE&context=a b")
    assert said.json["translations"][0]["text"] == answer
    assert said.headers["X-Linnet-Ignored"] == "context"


def test_deepls_own_command(door, answer, tmp_path):
    """python -m deepl, which comes with its client."""

    def run(*words: str) -> list[str]:
        command = [sys.executable, "-m", "deepl", "--server-url", door.url, "--auth-key", "cli"]
        done = subprocess.run([*command, *words], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    languages = ["--from", "EN", "--to", "DE"]
    assert run("text", *languages, "--show-detected-source", TEXT) == [
        "Detected source language: EN",
        answer,
    ]
    assert "EN: English" in run("languages")
    assert "en, de" in run("languages", "--glossary")
    assert run("usage")[0] == "Usage this billing period:"
    (tmp_path / "a.txt").write_text(TEXT + "\n")
    run("document", *languages, "a.txt", "out")
    assert (tmp_path / "out/a.txt").read_text()[:20] == answer[:20]  # controls are left out
    create = ["glossary", "create", "--name", "g", "--from", "EN", "--to", "DE", "two=zwo"]
    identity = run(*create)[-1].split()[0]
    assert run("glossary", "entries", identity) == ["two\tzwo"]
    assert "zwo" in run("text", *languages, "--glossary-id", identity, TEXT)[0]
    run("glossary", "delete", identity)
    assert len(run("glossary", "list")) == 1, "the head of the table"


def test_deepl_lists_of_tags_need_tag_handling(door, answer):
    languages = {"source_lang": "EN", "target_lang": "DE"}
    said = door.post("/v2/translate", {"text": [TEXT], "ignore_tags": ["x", "y"], **languages})
    assert said.json["translations"][0]["text"] == answer
    assert said.headers["X-Linnet-Ignored"] == "ignore_tags"


def test_deepl_lists_of_tags_say_how_tags_are_read(translator, door):
    def said(**tags) -> str:
        return translator.translate_text(
            f"<x>{TEXT}</x>{TEXT}",
            source_lang="EN",
            target_lang="DE",
            tag_handling="xml",
            split_sentences="off",
            **tags,
        ).text

    assert said(ignore_tags=["y", "x"]).startswith(f"<x>{TEXT}</x>")
    alone = translator.translate_text(TEXT, source_lang="EN", target_lang="DE").text
    assert said(splitting_tags=["x"]) == f"<x>{alone}</x>{alone}"
    assert said(splitting_tags=["x"], non_splitting_tags=["y", "x"]) == said()
    form = "source_lang=EN&target_lang=DE&tag_handling=html&ignore_tags=i, b"
    posted = door.post("/v2/translate", f"text=<b>{TEXT}</b>&{form}")
    assert posted.json["translations"][0]["text"] == f"<b>{TEXT}</b>"
    assert "X-Linnet-Ignored" not in posted.headers


def test_deepl_forms_repeat_text(door, answer):
    said = door.post("/v2/translate", f"text={TEXT}&text={TEXT}&source_lang=EN&target_lang=DE")
    assert [it["text"] for it in said.json["translations"]] == [answer, answer]


# As their clients send them: see the table in client/http/linnet_http/faces/dialects.py.
DIALECTS = {
    "deeplx": (
        {"text": TEXT, "source_lang": "EN", "target_lang": "DE"},
        lambda said: said["data"],
    ),
    "mtranserver": ({"text": TEXT, "from": "en", "to": "de"}, lambda said: said["result"]),
    "kiss": ({"text": TEXT, "from": "en", "to": "de"}, lambda said: said["text"]),
    "kiss list": (
        {"texts": [TEXT], "from": "en", "to": "de"},
        lambda said: said["translations"][0]["text"],
    ),
    "nllb-serve": (
        {"source": [TEXT], "src_lang": "eng_Latn", "tgt_lang": "deu_Latn"},
        lambda said: said["translation"][0],
    ),
    "curator": (
        {"texts": [TEXT], "src_lang": "en", "tgt_lang": "de"},
        lambda said: said["translations"][0],
    ),
    "immersive": (
        {"text_list": [TEXT], "source_lang": "en", "target_lang": "de"},
        lambda said: said["translations"][0]["text"],
    ),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_one_path_tells_dialects_apart(door, answer, name):
    body, text = DIALECTS[name]
    said = door.post("/translate", body)
    assert said.status == 200, said.body
    assert text(said.json) == answer


def test_mtranserver_takes_html_and_lists(door, answer):
    languages = {"from": "en", "to": "de"}
    body = {"texts": [TAGGED, ""], "html": True, **languages}
    tagged, empty = door.post("/translate/batch", body).json["results"]
    assert html.unescape(re.sub("</?[bp]>", "", tagged)) == answer
    assert re.findall("</?[bp]>", tagged) == ["<p>", "<b>", "</b>", "</p>"]
    assert empty == ""
    assert door.post("/translate", {"text": TAGGED, "html": True, **languages}).json["result"] == (
        tagged
    )
    assert door.post("/translate", {"text": TEXT, "html": "x", **languages}).status == 400


def test_unknown_dialect_lists_those_there_are(door):
    said = door.post("/translate", {"words": TEXT})
    assert said.status == 400
    assert "has the fields words" in said.json["error"]
    assert "text and target_lang" in said.json["error"]


def test_google_v2(door, answer):
    body = {"q": [TEXT], "source": "en", "target": "de", "format": "text"}
    said = door.post("/language/translate/v2", body).json
    assert said == {"data": {"translations": [{"translatedText": answer}]}}
    said = door.get(f"/language/translate/v2?q={TEXT.replace(' ', '+')}&source=en&target=de").json
    assert len(said["data"]["translations"]) == 1
    listed = door.post("/language/translate/v2/languages", {"target": "en"}).json
    assert {"language": "de", "name": "German"} in listed["data"]["languages"]
    found = door.post("/language/translate/v2/detect", {"q": "Guten Tag, wie geht es?"}).json
    assert found["data"]["detections"][0][0]["language"] == "de"


def test_google_reads_the_url_and_the_body(door):
    """Its clients send the key, and some the languages, in the URL of a POST."""
    path = "/language/translate/v2"
    said = door.post(f"{path}?key=a&source=en&target=de&format=text", "q=%2502d+%26+%3C1%3E")
    assert said.json == {"data": {"translations": [{"translatedText": "%02d & <1>"}]}}
    said = door.post(f"{path}?target=fr", {"q": "1", "source": "en", "target": "de"})
    assert said.status == 400
    assert said.json["error"]["message"].startswith("target is in the URL and in the body")


@pytest.mark.parametrize("path", ["/language/translate/v2", "/v1/translate"])
def test_texts_in_urls_are_decoded_once(door, path):
    format_ = "&format=text" if "language" in path else ""
    said = door.get(f"{path}?q=%2502d+%2541+%26&source=en&target=de{format_}")
    assert "%02d %41 &" in str(said.json)
    assert door.get(f"{path}?q=caf%e9&source=en&target=de").status == 400
    assert door.get(f"{path}?q=1&source=en&target=de&").status == 200


def test_google_takes_128_texts(door):
    body = {"q": ["a"] * 129, "source": "en", "target": "de", "format": "text"}
    said = door.post("/language/translate/v2", body)
    assert said.status == 413
    assert said.json["error"]["errors"][0]["reason"] == "uploadTooLarge"
    assert "129 texts, at most 128" in said.json["error"]["message"]
