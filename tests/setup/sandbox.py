"""A copy of the scripts on a machine with fake commands.

Every command that installs or builds is a small stand-in that writes down how it was called; PATH
holds nothing else but the plain tools that the scripts may use.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

TOOLS = [
    "awk",
    "bash",
    "cat",
    "chmod",
    "cp",
    "cut",
    "date",
    "dirname",
    "env",
    "find",
    "flock",
    "grep",
    "gzip",
    "head",
    "ln",
    "mkdir",
    "mv",
    "python3",
    "rm",
    "sed",
    "sh",
    "sha256sum",
    "sleep",
    "sort",
    "tail",
    "tar",
    "tee",
    "timeout",
    "touch",
    "tr",
    "xargs",
]

LOGGED = """#!/bin/sh
echo "$(basename "$0") $*" >>"$SANDBOX/commands"
"""

FAKES = {
    "basename": '#!/bin/sh\necho "${1##*/}"\n',
    "uname": '#!/bin/sh\necho "${FAKE_MACHINE:-x86_64}"\n',
    # The packages named in $FAKE_MISSING are missing until apt-get has installed them.
    "dpkg-query": """#!/bin/sh
for package; do :; done
case " $(cat "$SANDBOX/missing") " in *" $package "*) exit 1 ;; *) printf installed ;; esac
""",
    "apt-get": LOGGED
    + """
case $* in
  install*) : >"$SANDBOX/missing" ;;
  *" source "*) [ -z "$FAKE_SOURCE_MOVED" ] && cp "$SANDBOX"/grpc-source/* . ;;
esac
""",
    "apt-cache": "#!/bin/sh\nprintf 'Package: grpc\\nVersion: 9.99.9-1\\n'\n",
    "dpkg-source": LOGGED + 'mkdir -p "$4"\n',
    "patch": LOGGED + 'cat >/dev/null; [ -z "$FAKE_PATCH_FAILS" ]\n',
    "strip": LOGGED,
    "python3.11": """#!/bin/sh
case $* in
  "-m venv .venv") mkdir -p .venv/bin && cp "$SANDBOX/venv-python" .venv/bin/python ;;
esac
""",
    "cmake": LOGGED
    + """
case $* in
  *programs*)
    [ -z "$FAKE_BUILD_FAILS" ] || { echo "convolution.cc:7: error: no"; exit 2; }
    mkdir -p build/release/bin && cp "$SANDBOX"/programs/* build/release/bin/ ;;
  *grpcpp_channelz)
    for name in grpc++ grpc++_reflection grpcpp_channelz grpc gpr upb address_sorting; do
      echo lib >"$2/lib$name.so.1"
    done ;;
  *-B*grpc/build*) mkdir -p build/grpc/build ;;
  *sentencepiece-static) mkdir -p "$2/src" && echo lib >"$2/src/libsentencepiece.a" ;;
esac
""",
}

# Stands for linnet-http.
HTTP = """#!/bin/sh
echo "linnet-http $*" >>"$SANDBOX/commands"
port=8123
case $* in *"--listen 127.0.0.1:8080"*) [ -z "$FAKE_PORT_TAKEN" ] || exit 2; port=8080 ;; esac
echo "ready http=127.0.0.1:$port"
trap 'echo "linnet-http stopped" >>"$SANDBOX/commands"; exit 0' TERM
while :; do sleep 0.1; done
"""

VENV_PYTHON = """#!/bin/sh
case $1 in deploy/*) echo "$*" >>"$SANDBOX/commands"; exec python3 "$@" ;; esac
while [ $# -gt 0 ]; do
  case $1 in -r) list=$2 ;; -d) folder=$2 ;; download) download=1 ;; esac
  last=$1
  shift
done
echo "pip ${list##*/}" >>"$SANDBOX/commands"
[ "$last" != client/http ] || cp "$SANDBOX/linnet-http" .venv/bin/
[ -z "$download" ] || cp "$SANDBOX/sentencepiece-0.2.1.tar.gz" "$folder/"
"""

# Stands for deploy/stage_model.py: a linnet-model that fetches nothing.
STAGE_MODEL = """import os, sys
from pathlib import Path
folder = Path(sys.argv[2])
assert sys.argv[1] == "--links"
(folder / "bin").mkdir(parents=True, exist_ok=True)
command = folder / "bin/linnet-model"
command.write_text(Path(os.environ["SANDBOX"], "linnet-model").read_text())
command.chmod(0o755)
"""

LINNET_MODEL = """#!/bin/sh
echo "linnet-model $*" >>"$SANDBOX/commands"
[ -z "$FAKE_FETCH_FAILS" ] || { echo "linnet-model fetch: no model '$2' in the catalogue"; exit 1; }
mkdir -p "$4/$2" && echo "{}" >"$4/$2/manifest.json"
echo "licence: MPL-2.0"
"""

SERVER = """#!/usr/bin/env python3
import http.server, os, signal, sys, threading
def note(line):
    with open(os.environ["SANDBOX"] + "/commands", "a") as log:
        log.write("linnet-server " + line + "\\n")
note(" ".join(sys.argv[1:]))
fake = os.environ.get("FAKE_SERVER", "")
if fake == "dies":
    sys.exit("cannot listen on 127.0.0.1:50051: taken")
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        if fake != "no metrics":
            self.wfile.write(b"linnet_requests_total 2\\nlinnet_rows 0\\n")
    def log_message(self, *_):
        pass
def stop(*_):
    note("stopped")
    os._exit(3 if fake == "stops badly" else 0)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, lambda *_: note("interrupted"))
page = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
admin = " admin=127.0.0.1:9" if "--admin-listen" in sys.argv else ""
print(f"loading\\nready grpc=127.0.0.1:7 metrics=127.0.0.1:{page.server_port}{admin}", flush=True)
page.serve_forever()
"""

CLIENT = """#!/bin/sh
echo "config=$LINNET_CONFIG tls=$LINNET_TLS" >"$SANDBOX/settings-of-linnet"
[ "$1" != "$FAKE_CLIENT_FAILS" ] || { echo "UNAVAILABLE: no" >&2; exit 1; }
[ "$1" != "$FAKE_CLIENT_SILENT" ] || exit 0
echo "answer to $1 of $LINNET_SERVER"
"""


class Sandbox:
    def __init__(self, folder: Path):
        self.folder = folder
        self.tree = folder / "tree"
        for name in ("start.sh", "test.sh", "deps"):
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            self.tree.mkdir(exist_ok=True)
            copy(source, self.tree / name)
        setup = self.tree / "deps/setup.sh"
        setup.write_text(setup.read_text().replace("=/etc/os-release", f"={folder}/os-release"))
        scripts = self.tree / "deps/grpc.sh"
        scripts.write_text(scripts.read_text().replace("=/etc/apt ", f"={folder}/apt "))
        (folder / "apt/sources.list.d").mkdir(parents=True)
        self.add_sources("sources.list", "deb http://mirror/debian bookworm main\n")
        (folder / "missing").touch()
        for package in ("model", "client/python", "client/http", "client/corpus"):
            (self.tree / package).mkdir(parents=True, exist_ok=True)
            (self.tree / package / "pyproject.toml").write_text("[project]\n")
        for source in (
            "client/python/setup.py",
            "client/python/linnet/a.py",
            "proto/linnet/v1/a.proto",
        ):
            (self.tree / source).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / source).touch()
        self.be("debian", "12")
        self._fill()
        for path in [folder, *folder.rglob("*")]:  # for runs as another user
            path.chmod(0o777)

    def _fill(self) -> None:
        commands, programs = self.folder / "bin", self.folder / "programs"
        commands.mkdir()
        programs.mkdir()
        for tool in TOOLS:
            # a link to a version manager's shim would not find the real program
            found = shutil.which(tool, path="/usr/bin:/bin") or shutil.which(tool)
            (commands / tool).write_text(f'#!/bin/sh\nexec {found} "$@"\n')
        for name, text in FAKES.items():
            (commands / name).write_text(text)
        (self.folder / "venv-python").write_text(VENV_PYTHON)
        (self.tree / "deploy").mkdir()
        (self.tree / "deploy/stage_model.py").write_text(STAGE_MODEL)
        (self.folder / "linnet-model").write_text(LINNET_MODEL)
        (self.folder / "linnet-http").write_text(HTTP)
        (programs / "linnet-server").write_text(SERVER)
        (programs / "linnet").write_text(CLIENT)
        self._make_grpc_source()
        source = self.folder / "sentencepiece-0.2.1/sentencepiece/src"
        source.mkdir(parents=True)
        (source / "sentencepiece_processor.h").touch()
        part = source.parent / "third_party/darts_clone"
        part.mkdir(parents=True)
        (part / "LICENSE").touch()
        name = "sentencepiece-0.2.1"
        subprocess.run(["tar", "-czf", f"{name}.tar.gz", name], cwd=self.folder, check=True)

    def _make_grpc_source(self) -> None:
        """Creates files with the names of Debian's source package and matching hashes."""
        folder = self.folder / "grpc-source"
        folder.mkdir()
        versions = self.tree / "deps/versions.txt"
        text = versions.read_text()
        for name, digest in re.findall(r"^(grpc_\S+) --hash=sha256:(\w+)$", text, re.MULTILINE):
            (folder / name).write_text(name)
            text = text.replace(digest, hashlib.sha256(name.encode()).hexdigest())
        versions.write_text(text)

    def add_sources(self, name: str, text: str) -> None:
        """Writes a source list of apt."""
        (self.folder / "apt" / name).write_text(text)

    def be(self, system: str, version: str) -> None:
        """Makes the machine identify as this system."""
        (self.folder / "os-release").write_text(f'ID={system}\nVERSION_ID="{version}"\n')

    def lack(self, *packages: str) -> None:
        (self.folder / "missing").write_text(" ".join(packages))

    def add_command(self, name: str, text: str = LOGGED) -> None:
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def commands(self) -> list[str]:
        """The commands that were called since the last call of this method."""
        log = self.folder / "commands"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def popen(self, *command: str, user: int | None = None, **environment: str) -> subprocess.Popen:
        return subprocess.Popen(
            # A shell cannot trap signals that it inherits as ignored, as when the tests themselves
            # run in the background of a script. (A preexec_fn may abort in a process with threads.)
            ["/usr/bin/env", "--default-signal=INT", f"./{command[0]}", *command[1:]],
            cwd=self.tree,
            env={"PATH": str(self.folder / "bin"), "SANDBOX": str(self.folder), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=user,
            start_new_session=True,
        )

    def run(self, *command: str, user: int | None = None, **environment: str) -> tuple[int, str]:
        """Returns the exit status and the output."""
        process = self.popen(*command, user=user, **environment)
        try:
            output, _ = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, output
