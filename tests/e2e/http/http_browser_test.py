"""The pages in Chromium: at three widths, dark, by keyboard, from other origins; accessibility.

Screenshots are left in build/logs/pages.
"""

from __future__ import annotations

import http.server
import json
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_samples import SAMPLES, SRT
from programs import ROOT, skip, tools

pytestmark = pytest.mark.slow

PICTURES = ROOT / "build/logs/pages"
WIDTHS = (360, 768, 1280)
SECONDS = 60


@pytest.fixture(scope="module")
def selenium():
    """Selenium, from an environment of its own, whose other packages come after those of this."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        skip("there is no chromium: apt-get install chromium chromium-driver")
    (site,) = tools(Path(__file__).with_name("http_tools.txt")).glob("lib/python3*/site-packages")
    sys.path.append(str(site))
    import selenium.webdriver

    yield selenium.webdriver
    sys.path.remove(str(site))


@pytest.fixture(scope="module")
def chromium(selenium):
    options = selenium.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = selenium.ChromeService(shutil.which("chromedriver"))
    driver = selenium.Chrome(options, service)
    driver.set_script_timeout(SECONDS)
    yield driver
    driver.quit()


class Page:
    """A page in Chromium."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, url: str, width: int = 1280, scheme: str = "light") -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        self.driver.get("about:blank")
        self.driver.get_log("browser")  # of the page before
        self.driver.get(url)

    def script(self, text: str, *arguments):
        return self.driver.execute_script(text, *arguments)

    def one(self, selector: str):
        return self.driver.find_element("css selector", selector)

    def wait(self, done, what: str):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, SECONDS, 0.05).until(lambda _: done(), what)

    def keys(self, *keys: str) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> str:
        return self.script("return document.activeElement.id || document.activeElement.className")

    def translate(self, text: str) -> str:
        self.wait(
            lambda: self.script("return document.querySelector('#target').value"), "languages"
        )
        self.script("document.querySelector('#text').focus()")
        self.keys(text)
        ready = "const it = document.querySelector('#answer'); return it.querySelector('.sentence')"
        self.wait(lambda: self.script(f"{ready} && it.textContent"), "an answer")
        return self.script("return document.querySelector('#answer').textContent")

    def allow_clipboard(self, origin: str) -> None:
        permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        self.driver.execute_cdp_cmd(
            "Browser.grantPermissions", {"permissions": permissions, "origin": origin}
        )

    def clipboard(self) -> str:
        return self.driver.execute_async_script(
            "const done = arguments[0]; const read = () => navigator.clipboard.readText();"
            "setTimeout(() => read().then(done, (it) => done(String(it))), 200)"
        )

    def picture(self, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(PICTURES / f"{name}.png"))

    def check(self) -> None:
        """Nothing is refused by the policy, fails in a script, is wider than the page, or breaks a
        rule of WCAG 2."""
        log = self.driver.get_log("browser")
        assert [it for it in log if it["level"] in ("WARNING", "SEVERE")] == []
        overflow = "return document.documentElement.scrollWidth - window.innerWidth"
        assert self.script(overflow) <= 0
        from axe_selenium_python import Axe

        axe = Axe(self.driver)
        axe.inject()
        found = axe.run(options=json.dumps({"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]}))
        assert len(found["passes"]) > 10
        broken = {it["id"]: [node["html"] for node in it["nodes"]] for it in found["violations"]}
        assert broken == {}


@pytest.fixture
def page(chromium) -> Page:
    return Page(chromium)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_page_translates_at_every_width(page, door, server, width, scheme):
    page.open(f"{door.url}/", width, scheme)
    said = page.translate("one two three.")
    assert said == server.translate("one two three.").translations[0].text
    page.picture(f"translate-{width}-{scheme}")
    back = page.script("return getComputedStyle(document.body).backgroundColor")
    red = int(back.removeprefix("rgb(").partition(",")[0])
    assert (red < 64) == (scheme == "dark")
    page.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_status_page_shows_the_server(page, door, width, scheme):
    page.open(f"{door.url}/status", width, scheme)
    page.wait(lambda: "en-de" in page.one("#models").text, "models")
    page.wait(lambda: "MiB" in page.one("#cards").text, "memory")
    assert "Decode" in page.one("#phases").text
    page.picture(f"status-{width}-{scheme}")
    page.check()


def test_status_page_draws_what_happens(page, door, server):
    page.open(f"{door.url}/status", 768)
    page.wait(lambda: "en-de" in page.one("#models").text, "models")
    server.translate("one two three.")
    page.wait(lambda: page.script("return document.querySelector('#phases rect')"), "a histogram")
    page.wait(lambda: page.script("return document.querySelector('#cards path')"), "a line")
    page.picture("status-busy")
    page.check()


def test_page_summarises(page, door):
    page.open(f"{door.url}/#task=summarize")
    page.wait(lambda: page.script("return document.querySelector('#language').value"), "languages")
    page.script("document.querySelector('#text').focus()")
    page.keys("one two three. four five.")
    page.wait(lambda: page.one("#answer").text, "a summary")
    assert len(page.one("#answer").text.split()) > 2
    page.one("#words").send_keys("2\ue007")
    page.wait(lambda: 0 < len(page.one("#answer").text.split()) <= 2, "a short summary")
    page.picture("summarize")
    page.check()


def test_keyboard_reaches_everything(page, door):
    """By Tab alone, in the order of the page; a sentence offers others, Escape closes them."""
    page.open(f"{door.url}/")
    page.translate("one two three.")
    page.script("document.querySelector('nav a').focus()")
    seen = []
    for _ in range(30):
        page.keys("\ue004")  # Tab
        seen.append(page.focused())
        visible = "const it = getComputedStyle(document.activeElement); return it.outlineStyle"
        if seen[-1] == "sentence":
            assert page.script(visible) != "none"
            break
    order = [it for it in seen if it in ("source", "swap", "target", "text", "answer", "sentence")]
    assert order == ["source", "swap", "target", "text", "answer", "sentence"]
    page.keys("\ue007")  # Enter
    page.wait(lambda: page.script("return document.querySelector('dialog').open"), "alternatives")
    assert len(page.driver.find_elements("css selector", "#choices button")) >= 2
    page.picture("alternatives")
    page.check()
    page.keys("\ue00c")  # Escape
    page.wait(lambda: not page.script("return document.querySelector('dialog').open"), "its end")
    assert page.focused() == "sentence"


def test_words_show_their_alignment(page, door, selenium):
    page.open(f"{door.url}/")
    page.translate("one two three.")
    selenium.ActionChains(page.driver).move_to_element(page.one("#answer .word")).perform()
    page.wait(lambda: page.script("return document.querySelector('#marks mark')"), "a mark")


def test_a_file_is_uploaded_and_its_translation_downloaded(page, door, tmp_path):
    page.open(f"{door.url}/")
    page.wait(lambda: page.script("return document.querySelector('#target').value"), "languages")
    source = tmp_path / "cues.srt"
    source.write_bytes(SAMPLES["cues.srt"])
    page.one("#file").send_keys(str(source))
    page.wait(lambda: page.one("#result").is_displayed(), "a result")
    assert not page.one("#progress").is_displayed()
    assert page.one("#result").text == "Download cues_de.srt"
    page.picture("file")
    page.check()
    page.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    page.one("#result").click()
    page.wait((tmp_path / "cues_de.srt").exists, "the file")
    said = (tmp_path / "cues_de.srt").read_text()
    times = [it for it in said.splitlines() if " --> " in it]
    assert times == [it for it in SRT.splitlines() if " --> " in it]
    assert said != SRT


def test_a_file_that_is_refused_is_told_with_its_place(page, door, tmp_path):
    page.open(f"{door.url}/")
    page.wait(lambda: page.script("return document.querySelector('#target').value"), "languages")
    (tmp_path / "bad.vtt").write_text("no")
    page.one("#file").send_keys(str(tmp_path / "bad.vtt"))
    page.wait(lambda: "a WebVTT file begins with WEBVTT" in page.one("#error").text, "an error")
    assert not page.one("#result").is_displayed()


def test_tags_of_html_are_kept(page, door, server):
    page.open(f"{door.url}/")
    page.script("document.querySelector('details').open = true")
    page.one("#html").click()
    said = page.translate("<p>one <b>two</b> three.</p>")
    assert re.findall("</?[bp]>", said) == ["<p>", "<b>", "</b>", "</p>"]
    assert page.script("return document.querySelector('#answer b')") is None, "it is shown as text"
    page.picture("html")
    page.check()
    page.script("document.querySelector('#html').click()")
    plain = server.translate("<p>one <b>two</b> three.</p>").translations[0].text
    page.wait(lambda: page.one("#answer").text == plain, "the text without markup")


def test_an_answer_names_its_model_and_time_and_is_copied(page, door):
    page.open(f"{door.url}/")
    page.allow_clipboard(door.url)
    said = page.translate("one two three.")
    assert re.match(r"en-de \S+, .*\d\.\d\d s$", page.one("#about").text)
    page.one("#copy").click()
    assert page.clipboard() == said


def test_glossary_is_applied(page, door):
    page.open(f"{door.url}/")
    page.script(
        "document.querySelector('details').open = true;document.querySelector('#glossary').focus()"
    )
    page.keys("two = zwo")
    assert "zwo" in page.translate("one two three.")


def test_link_has_the_settings_and_no_text(page, door):
    page.open(f"{door.url}/")
    page.allow_clipboard(door.url)
    page.translate("one two three.")
    page.script(
        "document.querySelector('details').open = true; document.querySelector('#share').click()"
    )
    link = page.clipboard()
    assert link.startswith(f"{door.url}/#task=translate")
    assert "target=de" in link
    assert "two" not in link


def test_page_asks_for_a_token(page, open_door, start, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("0123456789abcdef0123456789abcdef person inference\n")
    tokens.chmod(0o600)
    server = start("--tokens", str(tokens))
    page.open(f"{open_door(server.grpc).url}/")
    page.wait(lambda: "Enter a token" in page.one("#error").text, "an error")
    page.picture("token")
    page.script("document.querySelector('#token').focus()")
    page.keys("0123456789abcdef0123456789abcdef", "\ue004")
    page.wait(lambda: page.script("return document.querySelector('#error').hidden"), "its end")
    assert page.translate("one two three.")


def test_page_says_that_its_server_is_gone(page, open_door, server):
    door = open_door(server.grpc)
    page.open(f"{door.url}/")
    page.translate("one.")
    assert door.stop() == 0
    page.script("document.querySelector('#text').focus()")
    page.keys(" two.")
    page.wait(lambda: "cannot reach its server" in page.one("#error").text, "an error")


@pytest.fixture
def other_origin() -> Iterator[str]:
    """A page of another origin."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>a page</title><p>one two three.</p>")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever).start()
        yield f"http://127.0.0.1:{served.server_address[1]}"
        served.shutdown()


IMMERSIVE = """
const [url, done] = arguments;
fetch(url, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ source_lang: 'auto', target_lang: 'de', text_list: ['one two three.'] }),
}).then(async (it) => done([it.status, await it.json()]), (it) => done([0, String(it)]));
"""
TAGS = """
const [url, done] = arguments;
fetch(url).then((it) => done(it.headers.get('ETag')), (it) => done(String(it)));
"""


def test_immersive_translate_of_a_page_of_another_origin(page, open_door, server, other_origin):
    """Its requests have a preflight, which Chromium makes by itself."""
    door = open_door(server.grpc)
    page.open(other_origin)
    status, said = page.driver.execute_async_script(IMMERSIVE, f"{door.url}/imme")
    assert status == 200, said
    assert said["translations"][0]["text"]
    tag = page.driver.execute_async_script(TAGS, f"{door.url}/v1/translate?q=a&source=en&target=de")
    assert tag.startswith('"'), "it must be exposed to scripts"
    page.driver.execute_async_script(IMMERSIVE, f"{door.url}/imme")
    door.stop()
    lines = [json.loads(line) for line in door.log.read_text().splitlines()]
    methods = [it["method"] for it in lines if it["event"] == "request"]
    assert methods == ["OPTIONS", "POST", "GET", "POST"], "the preflight is kept"


def test_scripts_of_an_origin_that_is_not_named_are_refused(page, open_door, server, other_origin):
    door = open_door(server.grpc, "--cors-origins", "https://a.example")
    page.open(other_origin)
    status, said = page.driver.execute_async_script(IMMERSIVE, f"{door.url}/imme")
    assert (status, said) == (0, "TypeError: Failed to fetch")
