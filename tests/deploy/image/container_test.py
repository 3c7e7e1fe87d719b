"""The image and the compose project, built and run.

Minutes long, so marked slow: `./test.sh --all` runs it, or pytest with `-m slow`. Skipped where
neither podman nor docker works, unless LINNET_CONTAINERS=required says that one must.
LINNET_TEST_IMAGE names an image that has been built from this tree already.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import certificates
import pytest
import yaml
from containers import GRACE_SECONDS, ROOT, Container, Project, run, skip, wait_until

pytestmark = pytest.mark.slow

HARDENED = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL")
HARDENED += ("--security-opt", "no-new-privileges")
MAX_BYTES = 850_000_000  # LibTorch 460 MB, Debian 75 to 220 and our packages 80, models 28


@pytest.fixture(scope="session")
def alone(engine, image) -> Iterator[Container]:
    """A server without network, capabilities and writable files, on one core."""
    container = engine.start(image, *HARDENED, "--network", "none", "--cpus", "1")
    yield container
    container.remove()


@pytest.fixture
def failing(engine, image):
    """failing(flags, arguments) → exit status and log of a server that cannot start."""
    started = []

    def start(*flags: str, arguments: tuple[str, ...] = ()) -> tuple[int, str]:
        started.append(container := engine.start(image, *HARDENED, *flags, arguments=arguments))
        return container.exit_code(), container.logs()

    yield start
    for container in started:
        container.remove()


# --- The image ----------------------------------------------------------------------------------


def test_image_has_labels_and_metadata(engine, image):
    described = engine.inspect("image", image)
    config = {**described, **described["Config"]}  # podman has the health check outside Config
    assert config["User"] == "10001:10001"
    assert config["StopSignal"] in ("SIGTERM", "15")
    assert config["Healthcheck"]["Test"] == ["CMD", "linnet", "health"]
    assert set(config["ExposedPorts"]) == {"50051/tcp", "9464/tcp"}
    labels = {
        key.removeprefix("org.opencontainers.image."): value
        for key, value in config["Labels"].items()
    }
    assert labels["title"] == "Linnet"
    project = re.search(r"project\(linnet VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert labels["version"] == project[1]
    assert labels["base.name"] == engine.base


def test_image_is_smaller_than_its_limit(engine, image):
    assert engine.inspect("image", image)["Size"] < MAX_BYTES


def test_container_answers_without_a_network(alone):
    alone.wait_for_ready()
    german = alone.exec("linnet", "translate", "--to", "de", "Where is the train station?").stdout
    assert german == "Wo ist der Bahnhof?\n"
    abstract = (ROOT / "tests/data/abstract.txt").read_text()
    assert alone.exec("linnet", "summarize", abstract).stdout.strip()
    assert alone.exec("linnet", "models").stdout.count("\n") == 4  # a heading and three models


def test_image_contains_the_licences(alone):
    assert alone.exec("cat", "/opt/linnet/LICENSE").stdout == (ROOT / "LICENSE").read_text()
    notices = alone.exec("cat", "/opt/linnet/THIRD_PARTY_NOTICES").stdout
    for part in ("LibTorch", "NVIDIA CUPTI", "CLI11", "JSON for Modern C++", "SentencePiece"):
        assert part in notices


def test_health_check_of_the_image_works(alone):
    wait_until(alone.healthy, "healthy")


def test_health_check_works_with_tls_and_tokens(engine, image, tmp_path):
    """Uses the environment and the folder of docker-compose.tls.yml."""
    overlay = yaml.safe_load((ROOT / "docker-compose.tls.yml").read_text())["services"]["server"]
    folder = certificates.make(tmp_path) / "server"
    for file in folder.iterdir():
        file.chmod(0o644)  # instead of chown, which needs root
    folder.chmod(0o755)
    flags = [f"--env={name}={value}" for name, value in overlay["environment"].items()]
    flags += ["--volume", f"{folder}:/secrets:ro", "--network", "none"]
    container = engine.start(image, *HARDENED, *flags)
    try:
        wait_until(container.healthy, "healthy")
        plain = ("--tls=false", "--timeout", "2s")
        assert container.exec("linnet", "health", *plain, check=False).returncode != 0
    finally:
        container.remove()


def test_process_is_unprivileged(alone):
    assert alone.exec("id", "-u").stdout == "10001\n"
    status = alone.exec("cat", "/proc/1/status").stdout
    assert re.search(r"^Uid:\t10001\t10001\t10001\t10001$", status, re.MULTILINE)
    assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
    assert alone.exec("touch", "/opt/linnet/models/new", check=False).returncode != 0


def test_threads_fit_the_cpu_limit(alone):
    alone.wait_for_ready()
    assert re.findall(r" model_loaded .* threads=(\d+)", alone.logs()) == ["1"] * 3  # models


def test_libraries_are_found_and_every_package_is_used(alone):
    """All linked libraries are found, and our packages name each package of [debian-runtime]."""
    script = (
        "for file in /opt/linnet/bin/*; do"
        " LD_DEBUG=files /lib64/ld-linux-x86-64.so.2 --list $file 2>&1; done"
    )
    linked = alone.exec("sh", "-c", script).stdout
    assert "not found" not in linked
    named = set(re.findall(r"file=(\S+) \[0\];  needed by /opt/linnet/", linked))
    paths = dict(re.findall(r"^\s*(\S+) => (/\S+)", linked, re.MULTILINE))
    assert len(named) > 10
    files = {file for name in named if not (file := paths[name]).startswith("/opt/linnet/")}
    # dpkg lists some libraries, for example zlib, at their old path under /lib.
    paths_of = f"$(readlink -f {' '.join(files)})"
    find = f"for file in {paths_of}; do dpkg -S $file || dpkg -S ${{file#/usr}}; done"
    owners = alone.exec("sh", "-c", find).stdout
    packages = {line.split(":")[0] for line in owners.splitlines()}
    versions = (ROOT / "deps/versions.txt").read_text()
    section = re.search(r"^\[debian-runtime\]\n(.*?)^$", versions, re.MULTILINE | re.DOTALL)
    assert set(section[1].split()) <= packages


def test_every_bundled_library_is_loaded(alone):
    libraries = set(alone.exec("ls", "/opt/linnet/lib").stdout.split())
    programs = alone.exec("sh", "-c", "ldd /opt/linnet/bin/*").stdout
    assert libraries == set(re.findall(r"=> /opt/linnet/(?:bin/\.\./)?lib/(\S+)", programs))


def test_wrong_flag_ends_the_container_with_a_message(failing):
    status, log = failing(arguments=("--max-batch-rows", "none"))
    assert status == 2
    assert "--max-batch-rows" in log
    status, log = failing(arguments=("--device", "cuda"))
    assert status == 1
    assert re.search(r"^ +en-de: device cuda ", log, re.MULTILINE), log


def test_unreadable_bundles_are_named_in_the_error(failing, tmp_path):
    tmp_path.chmod(0o755)
    locked = tmp_path / "models"
    locked.mkdir(mode=0o700)
    (locked / "en-de").mkdir()
    if os.geteuid() == 10001:
        pytest.skip("runs as the very user that must not read the folder")
    status, log = failing("--volume", f"{locked}:/opt/linnet/models:ro")
    assert status == 1
    assert re.search(
        r"^linnet-server: .*/opt/linnet/models.*ermission denied", log, re.MULTILINE
    ), log


# --- The compose project ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def project(engine, image, http_image) -> Iterator[Project]:
    if not Project.command(engine):
        skip(f"{engine.command} is here, but no compose command for it")
    made = Project(engine, image)
    made.environment["LINNET_HTTP_IMAGE"] = http_image
    try:
        made.up()
        yield made
    finally:
        made.down(check=False)


@pytest.fixture
def client(project: Project, program: Callable[[str], Path]) -> Callable[..., list[str]]:
    """client("translate", "…") -> the command that calls the project's server."""

    def command(*arguments: str, port: str = "LINNET_PORT") -> list[str]:
        server = f"127.0.0.1:{project.ports[port]}"
        return [str(program("linnet")), *arguments, "--server", server]

    return command


@pytest.fixture
def ask(client: Callable[..., list[str]]) -> Callable[..., str]:
    return lambda *arguments: run(*client(*arguments)).stdout


def ask_prometheus(project: Project, what: str) -> Any:
    url = f"http://127.0.0.1:{project.ports['PROMETHEUS_PORT']}/api/v1/{what}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        return json.load(answer)["data"]


def query(project: Project, expression: str) -> float | None:
    """The value in Prometheus, or None while it has none."""
    query_string = urllib.parse.urlencode({"query": expression})
    try:
        result = ask_prometheus(project, f"query?{query_string}")["result"]
    except OSError:
        return None  # not up yet
    return float(result[0]["value"][1]) if result else None


def test_compose_serves_on_the_published_port(project, ask):
    wait_until(project.service("server").healthy, "the server is healthy")
    german = ask("translate", "--to", "de", "Where is the train station?")
    assert german == "Wo ist der Bahnhof?\n"
    assert ask("summarize", "--file", "tests/data/abstract.txt").strip()


def test_web_page_and_http_api_are_on_the_published_port(project):
    url = f"http://127.0.0.1:{project.ports['LINNET_HTTP_PORT']}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=60) as page:
        assert b"<title>Linnet</title>" in page.read()
    question = b"q=Where+is+the+train+station%3F&source=en&target=de"
    with opener.open(f"{url}/translate", question, timeout=60) as reply:
        assert json.load(reply)["translatedText"] == "Wo ist der Bahnhof?"
    with opener.open(f"{url}/server-metrics", timeout=60) as reply:
        assert b"linnet_requests_total" in reply.read()


def test_prometheus_scrapes_the_server(project, ask):
    wait_until(lambda: query(project, 'up{job="linnet"}') == 1, "the server is up for Prometheus")
    calls = 'sum(linnet_requests_total{method="Translate"})'
    before = query(project, calls) or 0
    ask("translate", "--to", "de", "Good morning.")
    wait_until(lambda: (query(project, calls) or 0) > before, "the call is counted")


def test_profile_load_calls_the_server(project):
    wait_until(project.service("server").healthy, "the server is healthy")
    calls = 'sum(linnet_requests_total{method="Translate"})'
    before = query(project, calls) or 0
    assert project.up("load") == ["load"]
    wait_until(lambda: (query(project, calls) or 0) > before + 20, "the load arrives")
    project.stop("load")


def test_alert_fires_while_the_server_is_down(project, ask):
    """LinnetDown, which fires within a minute."""
    alert = 'ALERTS{alertname="LinnetDown", alertstate="firing"}'
    assert query(project, alert) is None
    project.stop("server")
    wait_until(lambda: query(project, alert), "the alert fires", seconds=180)
    project("start", "server")
    wait_until(project.service("server").healthy, "the server is healthy again")
    wait_until(lambda: query(project, alert) is None, "the alert is over", seconds=60)
    assert ask("translate", "--to", "de", "Good morning.").strip()


def test_prometheus_evaluates_every_rule(project):
    def healths() -> list[str]:
        groups = ask_prometheus(project, "rules")["groups"]
        return [rule["health"] for group in groups for rule in group["rules"]]

    wait_until(lambda: "unknown" not in healths(), "every rule was evaluated", seconds=120)
    assert len(healths()) > 20
    assert set(healths()) == {"ok"}


def test_restart_keeps_the_data_of_prometheus(project, ask):
    begin = time.time()
    for service in ("server", "prometheus"):
        project("restart", service)
    wait_until(project.service("server").healthy, "the server is healthy again")
    assert ask("translate", "--to", "de", "Good morning.").strip()
    seen = f'count_over_time(up{{job="linnet"}}[1h] @ {begin:.0f})'
    wait_until(lambda: query(project, seen), "Prometheus still has the samples from before")


def test_restart_keeps_the_failure_record(project):
    """The server's user can write it, which starts without rights on a read-only file system."""
    project.service("server").exec("sh", "-c", "echo '1 a-call' >$LINNET_SERVER_FAILURE_RECORD")
    project("restart", "server")
    server = project.service("server")
    wait_until(server.healthy, "the server is healthy again")
    kept = server.exec("sh", "-c", "cat $LINNET_SERVER_FAILURE_RECORD").stdout
    assert kept == "1 a-call\n"


def test_stop_drains_a_running_call(project, client):
    """`stop` sends SIGTERM and waits for stop_grace_period, in which the server drains."""
    assert f"stop_grace_period: {GRACE_SECONDS}s" in (ROOT / "docker-compose.yml").read_text()
    server = project.service("server")
    wait_until(server.healthy, "the server is healthy")
    text = (
        "The old man walked slowly along the river because he had lost his way in the dark. " * 40
    )
    command = [*client("translate", "--to", "de", "--beam", "8", text)]
    call = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(
        lambda: re.search(r"linnet_requests_in_flight\S* 1", scrape(server)),
        "the call is running",
    )
    project.stop("server")
    answer, errors = call.communicate(timeout=60)
    assert call.returncode == 0, errors
    assert answer.count("Fluss") > 20
    assert not server.running()
    assert server.state["ExitCode"] == 0
    assert "draining signal=15" in server.logs()


def scrape(server: Container) -> str:
    """The metrics page, read without a tool in the image."""
    script = (
        "exec 3<>/dev/tcp/127.0.0.1/9464; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
    )
    return server.exec("bash", "-c", script).stdout


def test_replicas_answer_behind_the_balancer(project, client):
    """The services of the profile whose images are available."""
    if "balancer" not in project.of_profile("replicas"):
        skip(f"there is no image {project.services['balancer']['image']}")
    project.up("replicas")
    replicas = project.all_of("replica")
    assert len(replicas) == project.replicas

    def answered(replica: Container) -> bool:
        port = "LINNET_BALANCER_PORT"
        run(*client("translate", "--to", "de", "--wait", "30s", "Good morning.", port=port))
        return not re.search(r'code="OK",method="Translate"\} 0$', scrape(replica), re.MULTILINE)

    for replica in replicas:
        wait_until(lambda replica=replica: answered(replica), f"{replica.name} is called")
    up = 'count(up{job="linnet", instance!="server:9464"} == 1)'
    wait_until(lambda: query(project, up) == project.replicas, "Prometheus has found them all")


def test_down_leaves_nothing(project):
    assert project.leftovers()
    project.down()
    assert project.leftovers() == {}


# --- docs/DEPLOYMENT.md, "In a container" --------------------------------------------------------


def test_commands_of_the_page_work(image, project_of_the_page):
    page = (ROOT / "docs/DEPLOYMENT.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^docker .*", "".join(blocks), re.MULTILINE)
    assert len(commands) > 5
    for command in commands:
        project_of_the_page(command)


@pytest.fixture
def project_of_the_page(engine, tmp_path):
    """Runs a docker command with the engine of this machine, with ports and names of this test."""
    if not Project.command(engine):
        skip(f"{engine.command} is here, but no compose command for it")
    project = Project(engine, "linnet-server")
    docker = tmp_path / "docker"
    docker.write_text(project.as_docker())
    docker.chmod(0o755)
    name = f"my-linnet-{os.getpid()}"
    containers = (lambda: project.service("server"), lambda: Container(engine, name))

    def call(command: str) -> None:
        command = command.replace("my-linnet", name)
        command = command.replace("127.0.0.1:50051", f"127.0.0.1:{project.grpc_port}")
        path = f"{tmp_path}:{os.environ['PATH']}"
        done = run("bash", "-c", command, PATH=path, seconds=3600, **project.environment)
        if "--detach" in command:  # as long as a reader needs for the next line
            container = containers["compose" not in command]()
            wait_until(container.healthy, f"healthy after {command}")
        if " linnet " in command:
            assert done.stdout.strip(), command

    yield call
    project.down(check=False)
    engine("rm", "--force", "--volumes", name, check=False)
