"""Fixtures of the tests of the command `linnet`."""

from __future__ import annotations

import os

import pytest

HIDDEN = ("XDG_", "LINNET_CONFIG")  # what leads away from the settings file below HOME


@pytest.fixture
def environment(server, tmp_path):
    """The environment with an empty home directory."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(HIDDEN)}
    return {**kept, "LINNET_SERVER": server.grpc, "HOME": str(home), "TERM": "xterm"}
