"""The image of linnet-model, and the page that leads from a download to an answer.

In containers, so slow, and skipped where there is no engine: see container_test.py.
LINNET_TEST_MODEL_IMAGE names an image that has been built from this tree already.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from containers import ROOT, Project, run, skip, wait_until

pytestmark = pytest.mark.slow

MAX_BYTES = (
    1_250_000_000  # Debian 75 to 220 MB, Python 40, LibTorch 380, torch and transformers 400
)
ALONE = ("--network", "none", "--read-only", "--cap-drop", "ALL")
PAIR = ("--source-language", "en", "--target-language", "de")
# A folder in the layout of OPUS-MT with random weights, and texts for it. The image's own Python
# makes them, so that this test needs no torch.
MAKE = """
import pathlib, sys
sys.path[:0] = ["/opt/linnet/python", "/data"]
import tiny_marian
tiny_marian.make_tiny_marian(pathlib.Path("/made/opus-mt-en-de"), max_position_embeddings=128)
for file in pathlib.Path("/made/opus-mt-en-de").iterdir():
    file.chmod(0o644)  # safetensors lets only the owner read
pathlib.Path("/made/texts").write_text("".join(line + "\\n" for line in tiny_marian.SOURCES[:24]))
"""


@pytest.fixture(scope="session")
def made(engine, model_image, tmp_path_factory) -> Path:
    """The folder that MAKE fills, which anybody may read and write."""
    folder = tmp_path_factory.mktemp("made")
    folder.chmod(0o777)
    mounts = ("--volume", f"{ROOT}/tests/data:/data:ro", "--volume", f"{folder}:/made")
    flags = ("--rm", "--network", "none", "--user", str(os.getuid()), *mounts)
    engine("run", *flags, "--entrypoint", "python3", model_image, "-B", "-c", MAKE)
    return folder


@pytest.fixture
def work(made: Path, tmp_path: Path) -> Path:
    """A folder for /work with a model and texts, which the image's user may write."""
    work = Path(shutil.copytree(made, tmp_path / "work"))
    work.chmod(0o777)
    return work


@pytest.fixture
def model(engine, model_image, work):
    """model("info", …) → a finished linnet-model in a container without network and rights."""

    def call(*arguments: str, flags: tuple[str, ...] = (), check: bool = True):
        mount = ("--rm", "--volume", f"{work}:/work")
        if engine.command == "podman":  # it would mount /tmp, as docker does not
            mount += ("--read-only-tmpfs=false",)
        return engine("run", *mount, *ALONE, *flags, model_image, *arguments, check=check)

    return call


def test_image_is_small_and_unprivileged(engine, model_image):
    described = engine.inspect("image", model_image)
    assert described["Size"] < MAX_BYTES
    config = described["Config"]
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["linnet-model"]
    assert config["Labels"]["org.opencontainers.image.title"] == "linnet-model"
    assert not config.get("ExposedPorts")


def test_image_imports_checks_and_converts(model, work):
    """With the image's own user; `check` answers as transformers does."""
    told = model("info", "opus-mt-en-de").stdout
    assert "linnet-model import huggingface --model opus-mt-en-de" in told
    flags = ("--model", "opus-mt-en-de", *PAIR, "--license", "none", "--golden", "texts")
    made = model("import", "huggingface", *flags, "--out", "en-de").stdout
    (examples,) = re.findall(r"^golden examples: (\d+)$", made, re.MULTILINE)
    assert int(examples) >= 2
    card = (work / "en-de/MODEL_CARD.md").read_text(encoding="utf-8")
    assert f"golden examples: {examples}, made by transformers " in card
    assert f"{examples} of {examples} golden examples in float32" in model("check", "en-de").stdout
    model("convert", "en-de", "--out", "half", "--dtype", "bfloat16")
    assert "stored as bfloat16" in model("info", "half").stdout


def test_image_runs_as_any_user(model, work):
    flags = ("--model", "opus-mt-en-de", *PAIR, "--no-golden")
    model("import", "huggingface", *flags, "--out", "other", flags=("--user", "12345:12345"))
    manifest = json.loads((work / "other/manifest.json").read_text(encoding="utf-8"))
    assert manifest["name"] == "en-de"


def test_errors_say_what_was_found_and_what_is_read(model, work):
    config = work / "opus-mt-en-de/config.json"
    table = json.loads(config.read_text())
    config.write_text(json.dumps(table | {"model_type": "t5"}))
    done = model("info", "opus-mt-en-de", check=False)
    assert done.returncode == 1
    assert 'has model_type "t5", this reads marian and m2m_100' in done.stderr
    done = model("import", "keras", check=False)
    assert done.returncode == 2
    assert "import keras: choose from fairseq, marian, huggingface" in done.stderr


def test_torch_of_the_image_needs_no_cuda(engine, model_image):
    script = (
        "ls /opt/linnet/python | grep -c nvidia;"
        " stat -c %s /opt/linnet/python/torch/lib/libtorch_cuda.so;"
        " ldd /opt/linnet/python/torch/lib/libtorch_python.so /opt/linnet/bin/linnet-decode"
    )
    flags = ("--rm", *ALONE, "--entrypoint", "sh")
    nvidia, size, *libraries = engine("run", *flags, model_image, "-c", script).stdout.split("\n")
    assert nvidia == "0"
    assert int(size) < 100_000
    assert not [line for line in libraries if "not found" in line]


# --- docs/IMPORT.md, "From a download to an answer" ----------------------------------------------


def lines_of_the_page() -> list[str]:
    page = (ROOT / "docs/IMPORT.md").read_text()
    section = page.split("## From a download to an answer\n")[1]
    return re.search(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1].splitlines()


@pytest.fixture
def checkout(made: Path, tmp_path: Path) -> Path:
    """A copy of the files of this tree, in which the reader's lines run."""
    folder = tmp_path / "checkout"
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard").stdout
    for name in listed.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    shutil.copytree(made / "opus-mt-en-de", folder / "opus-mt-en-de")
    return folder


def test_lines_of_the_page_lead_to_an_answer(engine, image, checkout, tmp_path):
    if not Project.command(engine):
        skip(f"{engine.command} is here, but no compose command for it")
    lines = lines_of_the_page()
    assert 6 < len(lines) <= 10
    project = Project(engine, image, "docker-compose.models.yml")
    docker = tmp_path / "docker"
    docker.write_text(project.as_docker())
    docker.chmod(0o755)
    environment = {**os.environ, **project.environment, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    printed = {}
    try:
        for line in lines:
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=checkout,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=3600,
            )
            assert done.returncode == 0, f"{line}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
            printed[line] = done.stdout
            if "--detach" in line:  # as long as a reader needs for the next line
                wait_until(project.service("server").healthy, "the server is healthy")
        assert "container" not in project.leftovers()
    finally:
        project.down(check=False)
    (answer,) = [text for line, text in printed.items() if " linnet translate " in line]
    assert answer.strip()
    (models,) = [text for line, text in printed.items() if " linnet models" in line]
    assert re.search(r"^en-de +translate +en to de +marian-", models, re.MULTILINE)
    card = (checkout / "models/en-de/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "- source: folder `opus-mt-en-de`\n- licence: CC-BY-4.0\n" in card
