"""Generates the blocking client and the typed stubs of the API when the package is built."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# pip runs this file without its folder in the path, and the folder may be read-only.
sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True
from blocking import blocking  # noqa: E402

PROTO = Path(__file__).resolve().parents[2] / "proto"
BLOCKING = {"aio.py": "client.py", "async_stream.py": "stream.py"}
FILES = ("linnet/v1/bundle.proto", "linnet/v1/text_service.proto")


class BuildWithStubs(build_py):
    def run(self) -> None:
        super().run()
        if not PROTO.is_dir():
            raise SystemExit(f"error: {PROTO} is not there: build the wheel in Linnet's repository")
        # Take the plugins of the building Python: pip installs build requirements separately.
        plugins = {name: shutil.which(f"protoc-gen-{name}") for name in ("mypy", "mypy_grpc")}
        for name, found in plugins.items():
            beside = Path(sys.executable).with_name(f"protoc-gen-{name}")
            plugins[name] = found or str(beside)
        outputs = [
            f"--{kind}_out={self.build_lib}"
            for kind in ("python", "grpc_python", "mypy", "mypy_grpc")
        ]
        given = [f"--plugin=protoc-gen-{name}={path}" for name, path in plugins.items()]
        command = [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"-I{PROTO}",
            *given,
            *outputs,
            *FILES,
        ]
        subprocess.run(command, check=True)
        package = Path(self.build_lib) / "linnet"
        for source, target in BLOCKING.items():
            code = blocking((package / source).read_text())
            (package / target).write_text(f"# Made of {source} by setup.py.\n{code}")


# pip builds in this folder; intermediate files go to a temporary one.
with tempfile.TemporaryDirectory() as folder:
    setup(
        cmdclass={"build_py": BuildWithStubs},
        options={"build": {"build_base": folder}, "egg_info": {"egg_base": folder}},
    )
