"""Podman or docker, whichever this machine has: images, containers, and the compose project."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import uuid
from functools import cached_property
from pathlib import Path

import pytest
import yaml
from replicas import free_port

ROOT = Path(__file__).resolve().parents[2]
BUILD_SECONDS = 3600  # the first build fetches and compiles everything
GRACE_SECONDS = 40  # stop_grace_period in docker-compose.yml
PROJECT_LABEL = "com.docker.compose.project"  # podman-compose sets it as well
# The base that the Dockerfile pins, and its name without the digest.
(BASE,) = re.findall(r"^ARG DEBIAN=(\S+)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)
UNPINNED_BASE = "debian:bookworm-slim"

# Podman's own format has no health checks. The other flags let a build run where podman itself
# runs in a container. podman-compose passes none of them on: Project.as_docker sets variables, so
# that its builds find the layers of the others.
PODMAN_BUILD_FLAGS = ("--format", "docker", "--isolation", "chroot", "--network", "host")

# Debian's package manager in a container: asks nothing.
APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y")


def skip(reason: str):
    if os.environ.get("LINNET_CONTAINERS") == "required":
        pytest.fail(f"LINNET_CONTAINERS=required, but {reason}")
    pytest.skip(reason)


def run(*command: str, check: bool = True, seconds: float = 300, **environment: str):
    """The finished process, with its output as text; a failure shows the output."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
    )
    printed = f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    assert done.returncode == 0 or not check, (
        f"{' '.join(command)} ended with {done.returncode}:\n{printed}"
    )
    return done


def wait_until(happened, what: str, seconds: float = 120):
    """The first true value of happened(), which is polled."""
    end = time.monotonic() + seconds
    while not (value := happened()):
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.5)
    return value


class Engine:
    """One of the two commands, which take the same arguments except for a build."""

    def __init__(self, command: str):
        self.command = command

    def __call__(self, *arguments: str, **options):
        return run(self.command, *arguments, **options)

    @staticmethod
    def find() -> tuple[Engine | None, str]:
        """A working engine, or the reason why there is none.

        LINNET_CONTAINER_ENGINE says which one to take where both are.
        """
        reasons = []
        named = os.environ.get("LINNET_CONTAINER_ENGINE")
        for command in (named,) if named else ("podman", "docker"):
            if not shutil.which(command):
                reasons.append(f"no {command}")
            elif (info := run(command, "info", check=False)).returncode:
                reasons.append(
                    f"{command} does not work: {(info.stderr.splitlines() or ['?'])[-1]}"
                )
            else:
                return Engine(command), ""
        return None, "; ".join(reasons)

    def build(self, tag: str, target: str = "cpu") -> None:
        self.build_file("Dockerfile", tag, "--target", target, f"--build-arg=DEBIAN={self.base}")

    def build_file(self, name: str, tag: str, *flags: str) -> None:
        """Builds a Dockerfile of deploy."""
        flags = ("-f", f"deploy/{name}", *flags, "-t", tag, ".")
        if self.command == "podman":
            flags = (*PODMAN_BUILD_FLAGS, *flags)
        if level := os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL"):
            flags = (f"--build-arg=CMAKE_BUILD_PARALLEL_LEVEL={level}", *flags)
        self("build", *flags, seconds=BUILD_SECONDS)

    def has_image(self, name: str) -> bool:
        """Returns whether the image is present or can be pulled."""
        here = self("image", "inspect", name, check=False).returncode == 0
        return here or self("pull", "--quiet", name, check=False).returncode == 0

    @cached_property
    def base(self) -> str:
        """The base of the Dockerfile; without a registry, the Debian image of this machine."""
        return BASE if self.has_image(BASE) else UNPINNED_BASE

    def inspect(self, kind: str, name: str) -> dict:
        return json.loads(self(kind, "inspect", name).stdout)[0]

    def start(self, image: str, *flags: str, arguments: tuple[str, ...] = ()) -> Container:
        name = f"linnet-test-{uuid.uuid4().hex[:8]}"
        self("run", "--detach", "--name", name, *flags, image, *arguments)
        return Container(self, name)


class Container:
    def __init__(self, engine: Engine, name: str):
        self.engine = engine
        self.name = name

    def exec(self, *command: str, check: bool = True, user: str | None = None):
        flags = ["--user", user] if user else []
        return self.engine("exec", *flags, self.name, *command, check=check)

    def logs(self) -> str:
        done = self.engine("logs", self.name)
        return done.stdout + done.stderr

    @property
    def state(self) -> dict:
        return self.engine.inspect("container", self.name)["State"]

    def running(self) -> bool:
        return self.state["Running"]

    def exit_code(self) -> int:
        """The exit status of a container that ends by itself."""
        return int(self.engine("wait", self.name).stdout)

    def healthy(self) -> bool:
        """The result of its HEALTHCHECK, which podman runs now because it has no timer here."""
        if self.engine.command == "podman":
            return self.engine("healthcheck", "run", self.name, check=False).returncode == 0
        return self.state["Health"]["Status"] == "healthy"

    def wait_for_ready(self) -> None:
        def ready() -> bool:
            assert self.running(), f"it ended with {self.state['ExitCode']}: {self.logs()}"
            return "ready grpc=" in self.logs()

        wait_until(ready, f"{self.name} is ready")

    def remove(self) -> None:
        self.engine("rm", "--force", "--volumes", self.name)


class Project:
    """docker-compose.yml, up on free ports under a name and an image of its own.

    podman-compose 1.0 knows neither profiles nor `service_healthy`: what is to start is named, in
    the order of the file, and each is waited for here.
    """

    def __init__(self, engine: Engine, image: str, *overlays: str):
        """overlays: further compose files."""
        self.engine = engine
        self.name = f"linnettest{os.getpid()}{'x' * len(overlays)}"
        self.files = [f"--file={file}" for file in ("docker-compose.yml", *overlays)]
        ports = "LINNET_PORT LINNET_HTTP_PORT LINNET_BALANCER_PORT PROMETHEUS_PORT GRAFANA_PORT"
        self.ports = {name: free_port() for name in ports.split()}
        self.environment = {name: str(port) for name, port in self.ports.items()}
        self.environment |= {"LINNET_IMAGE": image, "DEBIAN": engine.base}
        # podman-compose 1.0 fails at a second replica of a service that has a health check.
        self.replicas = 1 if engine.command == "podman" else 3
        self.environment["LINNET_REPLICAS"] = str(self.replicas)
        # It also creates what a service depends on again, and with it what is up already.
        self.keep = ("--no-recreate",) if engine.command == "podman" else ()
        self.services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
        named = [name for it in self.services.values() for name in it.get("profiles", [])]
        self.profiles = sorted(set(named))

    @property
    def grpc_port(self) -> int:
        return self.ports["LINNET_PORT"]

    @staticmethod
    def command(engine: Engine) -> list[str] | None:
        """The compose command of this engine, or None."""
        if engine.command == "podman":
            return ["podman-compose"] if shutil.which("podman-compose") else None
        works = engine("compose", "version", check=False).returncode == 0
        return ["docker", "compose"] if works else None

    def __call__(self, *arguments: str, check: bool = True):
        command = [*(self.command(self.engine) or ()), "-p", self.name]
        if self.engine.command == "docker":  # docker ignores services of other profiles
            command += [f"--profile={name}" for name in self.profiles]
        return run(*command, *self.files, *arguments, check=check, **self.environment)

    def has_image(self, service: str) -> bool:
        """Returns whether the image of the file is present or can be pulled."""
        name, default = re.fullmatch(r"\$\{(\w+):-(.*)\}", self.services[service]["image"]).groups()
        return self.engine.has_image(self.environment.get(name, default))

    def of_profile(self, profile: str | None = None) -> list[str]:
        """The services of a profile, or those without one, whose images are available."""
        wanted = [profile] if profile else None
        named = [
            name for name, service in self.services.items() if service.get("profiles") == wanted
        ]
        return [name for name in named if "build" in self.services[name] or self.has_image(name)]

    def up(self, profile: str | None = None) -> list[str]:
        """Starts the services in order, each when the previous one is healthy."""
        names = self.of_profile(profile)
        if self.engine.command == "docker":
            self("up", "--detach", *names)
            return names
        for name in names:
            self("up", "--detach", *self.keep, name)
            if self.services[name].get("healthcheck", {}).get("test"):
                for container in self.all_of(name):
                    wait_until(container.healthy, f"{name} is healthy")
        return names

    def as_docker(self) -> str:
        """A script that takes docker's arguments, to run commands as a reader types them."""
        if self.engine.command == "docker":
            docker = shutil.which("docker")
            compose = f'exec {docker} compose -p {self.name} "$@"'
            build = rest = f'exec {docker} "$@"'
        else:
            # Without profiles and without images that are not available: see the class.
            names = " ".join(self.of_profile())
            compose = (
                f'case $1 in up) exec podman-compose -p {self.name} "$@" {names} ;; esac; '
                f'exec podman-compose -p {self.name} "$@"'
            )
            flags = " ".join((*PODMAN_BUILD_FLAGS, f"--build-arg DEBIAN={self.engine.base}"))
            if level := os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL"):
                flags += f" --build-arg CMAKE_BUILD_PARALLEL_LEVEL={level}"
            build = f'shift; exec podman build {flags} "$@"'
            rest = 'exec podman "$@"'
        return f"""#!/bin/sh
export BUILDAH_ISOLATION=chroot BUILDAH_FORMAT=docker
case $1 in compose) shift; {compose} ;; build) {build} ;; *) {rest} ;; esac
"""

    def stop(self, service: str) -> None:
        # podman-compose does not know stop_grace_period.
        flags = ["-t", str(GRACE_SECONDS)] if self.engine.command == "podman" else []
        self("stop", *flags, service)

    def down(self, check: bool = True) -> None:
        self("down", "--volumes", check=check)
        if self.engine.command == "podman":  # podman-compose 1.0 leaves its network
            self.engine("network", "rm", "--force", f"{self.name}_default", check=check)

    def service(self, name: str) -> Container:
        """The one container of a service."""
        (found,) = self.all_of(name)
        return found

    def all_of(self, name: str) -> list[Container]:
        found = self.containers(f"label=com.docker.compose.service={name}")
        return [Container(self.engine, container) for container in found]

    def containers(self, *filters: str) -> list[str]:
        flags = [f"--filter={one}" for one in (f"label={PROJECT_LABEL}={self.name}", *filters)]
        return self.engine("ps", "--all", "--format", "{{.Names}}", *flags).stdout.split()

    def leftovers(self) -> dict[str, list[str]]:
        """The objects of this project, by kind."""
        found = {"container": self.containers()}
        for kind in ("network", "volume"):
            names = self.engine(kind, "ls", "--format", "{{.Name}}").stdout.split()
            found[kind] = [name for name in names if name.startswith(self.name)]
        return {kind: names for kind, names in found.items() if names}
