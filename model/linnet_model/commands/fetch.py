"""linnet-model fetch: downloads a model, and makes a bundle of it.

NAME is a model of the catalogue (--list), or with --index a language pair of an index of Mozilla's
(Firefox Translations). URL is an archive (.whl, .zip, .tar, .tar.gz, .tar.zst) with a model of
Marian or of Firefox, or several URLs are its files, which may be .gz or .zst. The download is
compared with its sha256, unpacked, imported as by `linnet-model import marian`, and checked as by
`linnet-model check`; nothing of it is executed. The bundle DIR/NAME appears at once, or not at all.
A download that was cut goes on from there when the command is given again.
"""

from __future__ import annotations

import argparse
import errno
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from linnet_model.bundle import MANIFEST
from linnet_model.command_line import command, parser_for
from linnet_model.commands.check import check
from linnet_model.config import ConfigError
from linnet_model.decode_command import find_decode
from linnet_model.fetch.assemble import assemble, name_of, wheel_folder
from linnet_model.fetch.catalog import Catalog, Index, model_named, read_catalog
from linnet_model.fetch.http import Downloads, public
from linnet_model.fetch.index import MAX_INDEX_BYTES, Variant, choose, read_index
from linnet_model.fetch.plan import SHA256, Download, Plan
from linnet_model.fetch.unpack import without_packing
from linnet_model.importers.marian.import_marian import MarianFlags, import_downloaded


def is_url(text: str) -> bool:
    return "://" in text


# --- What to fetch


def open_index(
    options: argparse.Namespace, catalog: Catalog, downloads: Downloads
) -> tuple[list[Variant], Index]:
    """Reads the index of --index: one of the catalogue, a URL, or a file."""
    index = catalog.indexes.get(options.index) or Index(options.index, "", "")
    base = options.files_at
    if is_url(index.url):
        text = downloads.text(index.url, MAX_INDEX_BYTES)
    else:
        file = Path(index.url)
        if not file.is_file():
            raise ConfigError(
                f"--index {index.url} is no URL, no file, and none of the catalogue's "
                f"({', '.join(catalog.indexes)})"
            )
        if file.stat().st_size > MAX_INDEX_BYTES:
            raise ConfigError(f"{file} has more than {MAX_INDEX_BYTES} bytes, the limit")
        text = file.read_text(encoding="utf-8")

    def server_base() -> str:
        """Asks the server of Remote Settings where attachments are."""
        server, slash, _ = index.url.partition("/v1/")
        if not slash or not is_url(server):
            return ""
        about = downloads.json(f"{server}{slash}", MAX_INDEX_BYTES)
        try:
            return str(about["capabilities"]["attachments"]["base_url"])
        except (KeyError, TypeError):
            return ""

    return read_index(
        text, public(index.url) if is_url(index.url) else index.url, base, server_base
    ), index


def license_for(options: argparse.Namespace, known: str, what: str) -> str:
    license_text = str(options.license or "").strip() or known
    if not license_text:
        raise ConfigError(
            f"the licence of {what} is not known here: read it where the model comes from, and "
            "state it with --license"
        )
    return license_text


def plans_of(options: argparse.Namespace, catalog: Catalog, downloads: Downloads) -> Iterator[Plan]:
    urls = [it for it in options.model if is_url(it)]
    if urls:
        if len(urls) != len(options.model):
            raise ConfigError("name models of the catalogue, or URLs of one model, not both")
        yield plan_of_urls(options, urls)
        return
    if options.index:
        variants, index = open_index(options, catalog, downloads)
        for name in options.model:
            yield plan_of_variant(options, variants, index, name)
        return
    for name in options.model:
        plan = model_named(catalog, name)
        yield Plan(**{**vars(plan), "license": license_for(options, plan.license, name)})


def plan_of_urls(options: argparse.Namespace, urls: list[str]) -> Plan:
    if options.hash and len(urls) > 1:
        raise ConfigError("--hash is that of one file, and several URLs are given")
    license_text = license_for(options, "", public(urls[0]))
    languages = options.source_language, options.target_language
    return Plan(
        # Empty: the importer reads the languages off the names of the files.
        name="-".join(languages).lower() if all(languages) else "",
        source_language=options.source_language,
        target_language=options.target_language,
        license=license_text,
        origin=", ".join(public(url) for url in urls),
        downloads=tuple(
            Download(url, without_packing(name_of(url)), sha256=options.hash or "") for url in urls
        ),
        folder=options.folder,
    )


def plan_of_variant(
    options: argparse.Namespace, variants: list[Variant], index: Index, name: str
) -> Plan:
    where = public(index.url) if is_url(index.url) else index.url
    found = choose(variants, name, options.variant, where)
    version = f", version {found.version}" if found.version else ""
    return Plan(
        name=found.pair,
        source_language=found.source,
        target_language=found.target,
        license=license_for(options, index.license, f"the models of {where}"),
        origin=f"{where}, {found.pair}, {found.told()}{version}",
        what=f"{found.told()}{version}",
        downloads=found.files,
    )


# --- From a plan to a bundle


def refuse_existing(out: Path) -> None:
    if out.exists():
        raise ConfigError(f"{out} exists: remove it, or give the model another --name")


def fetch(plan: Plan, options: argparse.Namespace, downloads: Downloads, decode: Path) -> None:
    """Writes one bundle."""
    name = options.name or plan.name
    if name and options.keep and (options.out / name / MANIFEST).is_file():
        print(f"{options.out / name}: there already")
        return
    if name:
        refuse_existing(options.out / name)
    print(f"fetching {plan.name or plan.origin}{f', {plan.what}' if plan.what else ''}")
    print(f"licence: {plan.license}")
    # A server does not look into folders that begin with a dot.
    work = options.out / f".fetch-{name or name_of(plan.downloads[0].url)}"
    work.mkdir(parents=True, exist_ok=True)
    for left in ("unpacked", "bundle"):  # of a run that was stopped
        shutil.rmtree(work / left, ignore_errors=True)
    folder, told = assemble(plan, work, downloads)
    bundle = work / "bundle"
    flags = MarianFlags(
        name=name or None,
        source_language=plan.source_language or None,
        target_language=plan.target_language or None,
    )
    source = "; ".join([plan.origin, *told])
    manifest = import_downloaded(folder, bundle, plan.license, source, flags)
    out = options.out / manifest["name"]
    refuse_existing(out)
    print(f"{manifest['description']}, stored as {manifest['architecture']['weight_type']}")
    print(check(bundle, decode, "float32", 0))
    bundle.rename(out)
    shutil.rmtree(work)
    languages = (manifest[f"{side}_language_code"] for side in ("source", "target"))
    print(f"{out}: a bundle, {' to '.join(languages)}")


@contextmanager
def room(out: Path) -> Iterator[None]:
    """Says what to do if the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise ConfigError(
            f"no room is left at {error.filename or out}: free some, and give the command again; "
            "the download goes on where it stopped"
        ) from None


def listed(catalog: Catalog, variants: list[Variant] | None, license_text: str) -> list[str]:
    """Returns the lines of --list."""
    rows = [("NAME", "LANGUAGES", "MODEL", "LICENCE")]
    if variants is None:
        for name, plan in catalog.models.items():
            languages = f"{plan.source_language} to {plan.target_language}"
            rows.append((name, languages, plan.what, plan.license))
    else:
        for it in sorted(variants, key=lambda one: (one.pair, one.rank())):
            languages = f"{it.source} to {it.target}"
            rows.append((it.pair, languages, it.told(), license_text))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*map(str.ljust, row[:3], widths), row[3]]) for row in rows]
    if variants is None:
        lines += [
            f"--index {name}: {it.what}, {it.license}" for name, it in catalog.indexes.items()
        ]
    return lines


def digest(text: str) -> str:
    if not SHA256.fullmatch(text.lower()):
        raise argparse.ArgumentTypeError(f"{text!r} is no sha256, 64 hexadecimal digits")
    return text.lower()


def command_line() -> argparse.ArgumentParser:
    parser = parser_for(__doc__)
    add = parser.add_argument
    add("model", nargs="*", metavar="NAME|URL", help="models of the catalogue or of an index; or "
        "the URLs of one model")  # fmt: skip
    add("--list", action="store_true", help="list the models of the catalogue, or of --index")
    add("--out", type=Path, metavar="DIR", help="folder of the bundles, as linnet-server --models")
    add("--keep", action="store_true", help="leave a bundle that is there already as it is")
    add("--name", help="name of the bundle [SOURCE-TARGET]")
    add("--license", help="licence of the weights, for a URL; the card states it")
    add("--hash", type=digest, metavar="SHA256", help="sha256 of the file at the URL")
    add("--folder", default="", help="folder of the model in the archive, if it has several")
    add("--source-language", default="", help="of the model at the URL, BCP-47: en, pt-BR")
    add("--target-language", default="", help="BCP-47")
    add("--index", default="", metavar="NAME|URL|FILE", help="take the model from an index")
    add("--variant", default="", metavar="ARCHITECTURE",
        help="base, base-memory or tiny [of the released ones the first of these]")  # fmt: skip
    add(
        "--files-at", default="", metavar="URL", help="where the paths of the index begin [it says]"
    )
    add(
        "--decode", type=Path, metavar="FILE", help="path of linnet-decode [the built or installed]"
    )
    return parser


@command
def main(arguments: list[str] | None = None) -> None:
    parser = command_line()
    options = parser.parse_args(arguments)
    catalog, downloads = read_catalog(), Downloads()
    if options.list:
        if options.index:
            variants, index = open_index(options, catalog, downloads)
            license_text = options.license or index.license or "not stated"
            print("\n".join(listed(catalog, variants, license_text)))
        else:
            print("\n".join(listed(catalog, None, "")))
        return
    if not options.model or options.out is None:
        parser.error("name a model and the folder for its bundle: NAME --out DIR, or --list")
    if options.name and len(options.model) > 1 and not is_url(options.model[0]):
        parser.error("--name is that of one bundle, and several models are named")
    for url in filter(is_url, options.model):
        if urlsplit(url).scheme not in ("http", "https"):
            parser.error(f"{url}: only http:// and https:// are fetched")
    decode = find_decode(options.decode)
    if decode is None:
        raise ConfigError(
            "linnet-decode, which checks the bundle, is not built and not installed: run "
            "./start.sh --build, install the package linnet-server, or name it with --decode"
        )
    with room(options.out):
        plans = list(plans_of(options, catalog, downloads))
        for plan in plans:
            fetch(plan, options, downloads, decode)
        for wheel in {plan.wheel for plan in plans if plan.wheel}:
            shutil.rmtree(wheel_folder(wheel, options.out))


if __name__ == "__main__":
    sys.exit(main())
