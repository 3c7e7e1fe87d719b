"""Signed bundles, made with the commands of the documentation."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from admin_test import admin

ROOT = Path(__file__).resolve().parents[3]
LOADED, FAILED = 1, 3


def commands() -> list[str]:
    """The page's commands to create keys and to sign."""
    page = (ROOT / "docs/SERVING_MODELS.md").read_text()
    return re.findall(r"^openssl .*$", page, re.MULTILINE)


def run(command: str, folder: Path) -> None:
    subprocess.run(["sh", "-ec", command], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def key(tmp_path) -> Path:
    *make, _ = commands()
    for command in make:
        run(command, tmp_path)
    return tmp_path / "bundle-key.pub"


def sign(bundle: Path, key: Path) -> None:
    command = commands()[-1].replace("en-de/", f"{bundle}/")
    run(command, key.parent)


def test_unsigned_bundle_is_not_served(run_server, copied_bundle, key):
    status, _, stderr = run_server(
        *("--models", str(copied_bundle), "--bundle-key", str(key)),
        *("--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"),
    )
    assert status == 1
    assert "not signed" in stderr
    assert "manifest.json.sig" in stderr


def test_signed_bundle_is_served_until_it_is_changed(start, copied_bundle, key):
    sign(copied_bundle, key)
    models = copied_bundle.parent
    server = start("--bundle-key", str(key), "--admin-listen", "127.0.0.1:0", models=models)
    before = server.translate("A bird sings.").model_version
    manifest = copied_bundle / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": "changed"}))
    (model,) = admin(server, "Reload").models
    assert (model.outcome, model.model_version) == (FAILED, before)
    assert "manifest.json.sig" in model.error.message
    assert server.translate("A bird sings.").model_version == before
    sign(copied_bundle, key)
    (model,) = admin(server, "Reload").models
    assert (model.outcome, model.model_version) == (LOADED, "changed")
    assert server.stop() == 0


def test_names_an_invalid_key(run_server, copied_bundle, tmp_path):
    status, _, stderr = run_server(
        *("--models", str(copied_bundle), "--bundle-key", str(tmp_path / "nowhere.pub")),
        *("--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"),
    )
    assert status == 1
    assert "nowhere.pub" in stderr
