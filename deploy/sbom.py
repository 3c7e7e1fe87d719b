#!/usr/bin/env python3
"""The bill of materials of an image or of a Debian package, as CycloneDX 1.6 in JSON.

    deploy/sbom.py image --status FILE --notices FILE [--cuda] >linnet-server.cdx.json
    deploy/sbom.py package linnet-server_VERSION_amd64.deb >linnet-server.cdx.json

Run it in a checkout of the version that was built. Bundled components come from deps/versions.txt,
with the hashes that were checked when they were fetched. Versions of Debian's header-only libraries
come from THIRD_PARTY_NOTICES, which is in the image (/opt/linnet) and in the packages. Debian's
packages come from the image's /var/lib/dpkg/status, or as names from the dependencies of a package.

Needs cyclonedx-python-lib: [sbom] in deps/versions.txt. The same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import AttachedText, HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import (
    Component,
    ComponentType,
    Diff,
    Patch,
    PatchClassification,
    Pedigree,
)
from cyclonedx.model.dependency import Dependency
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = (ROOT / "deps/versions.txt").read_text()
HEADERS = {"libcli11-dev": "CLI11", "nlohmann-json3-dev": "JSON for Modern C++"}
DEBIAN = "debian-12"


def section(name: str) -> list[str]:
    (lines,) = re.findall(rf"^\[{name}\]\n(.*?)(?:^$|\Z)", VERSIONS, re.MULTILINE | re.DOTALL)
    return [line for line in lines.splitlines() if not line.startswith("#")]


def sha256(digest: str) -> list[HashType]:
    return [HashType(alg=HashAlgorithm.SHA_256, content=digest)]


def wheel(line: str) -> Component:
    name, version, digest = re.fullmatch(r"(\S+)==(\S+) --hash=sha256:(\w+)", line).groups()
    return library(name, version, PackageURL("pypi", name=name, version=version), sha256(digest))


def library(
    name: str, version: str | None, purl: PackageURL, hashes: Iterable[HashType] = ()
) -> Component:
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        purl=purl,
        hashes=hashes,
        bom_ref=str(purl),
    )


def debian(name: str, version: str | None, arch: str | None = None) -> Component:
    qualifiers = {"distro": DEBIAN} | ({"arch": arch} if arch else {})
    purl = PackageURL("deb", "debian", name, version, qualifiers=qualifiers)
    return library(name, version, purl)


def grpc() -> Component:
    """Debian's source package with our patches."""
    name, version, digest = re.fullmatch(
        r"(\w+)_(\S+)\.dsc --hash=sha256:(\w+)", section("debian-grpc")[0]
    ).groups()
    found = debian(name, version, "source")
    found.hashes = sha256(digest)
    found.pedigree = Pedigree(
        patches=[
            Patch(
                type=PatchClassification.UNOFFICIAL,
                diff=Diff(text=AttachedText(content=file.read_text())),
            )
            for file in sorted((ROOT / "deps/grpc").glob("*.patch"))
        ]
    )
    return found


def headers(notices: str) -> Iterator[Component]:
    for package, title in HEADERS.items():
        (version,) = re.findall(rf"^{re.escape(title)} (\S+): ", notices, re.MULTILINE)
        yield debian(package, version)


def models() -> Iterator[Component]:
    for file in sorted((ROOT / "model/bundles").glob("*/manifest.json")):
        manifest = json.loads(file.read_text())
        name, version = manifest["name"], manifest["version"]
        purl = PackageURL("generic", "linnet", name, version)
        yield Component(
            type=ComponentType.MACHINE_LEARNING_MODEL,
            name=name,
            version=version,
            purl=purl,
            bom_ref=str(purl),
            hashes=sha256(
                hashlib.sha256(file.read_bytes()).hexdigest()
            ),  # the manifest has the hashes of the other files
        )


def brought(what: str, notices: str, cuda: bool) -> list[Component]:
    """The components of an image or a package that are not Debian packages."""
    if what == "linnet-dev":  # headers and static libraries of Linnet alone
        return []
    if what == "linnet-model":  # torch without its libraries, which are the server's
        return [*map(wheel, section("libtorch")[:1] + section("import"))]
    if what == "linnet-http":
        return [*map(wheel, [*section("http"), *section("files")])]
    found = [grpc(), *headers(notices)]
    if what == "linnet-client":
        return found
    wheels = section("libtorch") + section("sentencepiece") + (section("cuda") if cuda else [])
    return [*found, *map(wheel, wheels), *models()]


def installed(status: str) -> Iterator[Component]:
    """Debian's packages in an image, from dpkg's status file."""
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Architecture|Status): (.*)$", paragraph, re.M))
        if fields.get("Status", "").endswith(" installed"):
            yield debian(fields["Package"], fields["Version"], fields["Architecture"])


def depended_on(depends: str) -> Iterator[Component]:
    """The Debian packages that a package depends on; the target machine decides the versions."""
    for word in depends.split(","):
        if name := word.split("(")[0].strip():
            yield debian(name, None)


def bill(root: Component, parts: Iterable[Component]) -> str:
    root.licenses = [LicenseFactory().make_with_id("Apache-2.0")]
    bom = Bom(components=parts)
    bom.metadata.component = root
    bom.dependencies = [
        Dependency(
            ref=root.bom_ref, dependencies=[Dependency(ref=it.bom_ref) for it in bom.components]
        )
    ]
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
    bom.metadata.timestamp = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    refs = "\n".join(sorted(str(it.bom_ref.value) for it in [root, *bom.components]))
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, refs)
    return JsonV1Dot6(bom).output_as_string(indent=2)


def root_of(name: str, kind: ComponentType) -> Component:
    (version,) = re.findall(
        r"^project\(linnet VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M
    )
    purl = PackageURL("generic", "linnet", name, version)
    return Component(type=kind, name=name, version=version, purl=purl, bom_ref=str(purl))


def of_image(status: Path, notices: Path, cuda: bool) -> str:
    name = "linnet-server-cuda" if cuda else "linnet-server"
    parts = brought("linnet-server", notices.read_text(), cuda) + list(
        installed(status.read_text())
    )
    return bill(root_of(name, ComponentType.CONTAINER), parts)


def dpkg_deb(*arguments: str) -> str:
    done = subprocess.run(["dpkg-deb", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def of_package(file: Path) -> str:
    name = dpkg_deb("--field", str(file), "Package")
    with tempfile.TemporaryDirectory() as folder:
        dpkg_deb("--extract", str(file), folder)
        notices = Path(folder) / f"usr/share/doc/{name}/THIRD_PARTY_NOTICES"
        parts = brought(name, notices.read_text() if notices.exists() else "", cuda=False)
    parts += depended_on(dpkg_deb("--field", str(file), "Depends"))
    return bill(root_of(name, ComponentType.APPLICATION), parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    image = kinds.add_parser("image")
    image.add_argument(
        "--status", type=Path, required=True, help="/var/lib/dpkg/status of the image"
    )
    image.add_argument(
        "--notices", type=Path, required=True, help="/opt/linnet/THIRD_PARTY_NOTICES of the image"
    )
    image.add_argument("--cuda", action="store_true", help="the image for a GPU")
    package = kinds.add_parser("package")
    package.add_argument("file", type=Path)
    options = parser.parse_args()
    if options.kind == "image":
        print(of_image(options.status, options.notices, options.cuda))
    else:
        print(of_package(options.file))


if __name__ == "__main__":
    sys.exit(main())
