"""Prometheus as a process, with the configuration and the rules of deploy/prometheus."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml
from programs import ROOT
from replicas import free_port

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["prometheus"]


class Prometheus:
    """Scrapes its targets and evaluates the rules every second, so that tests are short."""

    def __init__(self, binary: str, targets: list[str], runbooks: str = ""):
        self.folder = tempfile.TemporaryDirectory(prefix="linnet-prometheus-")
        self.url = f"http://127.0.0.1:{free_port()}"
        config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
        config["global"] |= {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(ROOT / "deploy/prometheus" / it) for it in config["rule_files"]]
        (scrape,) = config["scrape_configs"]
        scrape["static_configs"] = [{"targets": targets}]
        del scrape["dns_sd_configs"]  # the names of a compose project
        file = Path(self.folder.name) / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        command = [binary, f"--config.file={file}", f"--storage.tsdb.path={self.folder.name}/data"]
        command += [f"--web.listen-address={self.url.removeprefix('http://')}"]
        command += [flag for flag in COMPOSE["command"] if flag.startswith("--enable-feature=")]
        self.log = (Path(self.folder.name) / "log").open("w+")
        (variable,) = COMPOSE["environment"]
        self.process = subprocess.Popen(
            command,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={**os.environ, variable: runbooks},
        )

    def ask(self, path: str, **parameters: str) -> dict:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with opener.open(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is still opening its storage
                raise
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[dict]:
        return self.ask("query", query=expression)["result"]

    def wait_for(self, expression: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while True:
            try:
                if self.query(expression):
                    return
            except OSError:  # not up yet
                assert self.process.poll() is None, Path(self.log.name).read_text()
            assert time.monotonic() < end, f"{expression} has no value after {seconds} s"
            time.sleep(0.2)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.folder.cleanup()
