"""Every request and the program in docs/HTTP.md work."""

import re
import shlex
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[3] / "docs/HTTP.md").read_text()
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
REQUESTS = re.findall(r"^curl .*$", PAGE, re.MULTILINE)


def test_there_are_ten():
    assert len(REQUESTS) == 10


@pytest.mark.parametrize("command", REQUESTS)
def test_request(door, command):
    """The flags of curl that the page uses, without curl."""
    words = iter(shlex.split(command)[1:])
    headers, fields, url = {}, [], ""
    for word in words:
        if word == "-H":
            name, value = next(words).split(": ", 1)
            headers[name.replace("-", "_")] = value
        elif word == "-d" or word == "--data-urlencode":
            fields.append(next(words))
        elif not word.startswith("-"):
            url = word
    path = url.removeprefix("http://127.0.0.1:8080")
    assert path != url
    if not fields:
        said = door.get(path, **headers)
    else:
        kind = headers.pop("Content_Type", "application/x-www-form-urlencoded")
        body = "&".join(fields).encode()
        said = door.send("POST", path, body, Content_Type=kind, **headers)
    assert said.status == 200, said.body
    assert said.body


def test_program(door, server, capsys):
    exec(PROGRAM.replace("http://127.0.0.1:8080", door.url), {})
    said = server.translate("A dog runs.").translations[0].text
    assert capsys.readouterr().out == f"{said}\n{said}\n"
