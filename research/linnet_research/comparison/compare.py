"""linnet-compare: compares the mixers on the same data, with equal sizes and updates.

One recipe is trained for each mixer and seed; the feed-forward width is changed so that all models
have as many parameters as the recipe's. The learning rate is the recipe's, or for mixers of --tune
the one of --rates with the lowest validation loss of seed 1 from random weights. With --equal-time
the first mixer has the recipe's updates, and each other one as many as it makes in the same time,
which is measured first; warm-up and decay keep their shares of the updates. Every model is
exported, decodes the test set with linnet-decode, and is timed. Timed updates and decoding take
turns between the models, so that load on the machine affects all alike. Results are written to
--out as they come. Existing ones are not made again; they are refused if recipe, data or arguments
have changed since.

With --pretrain each mixer is pre-trained once, and trained with each seed from these weights beside
from random ones, with the same updates. A classifier or parser is decoded by the search in Python.
Neither is timed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from linnet_model import __version__
from linnet_model.bundle import sha256
from linnet_model.command_line import command, count_from, parser_for
from linnet_model.config import SERVED, ConfigError, Recipe, read_recipe, to_tables
from linnet_model.data_config import PLAIN_DOMAIN
from linnet_model.decode_command import find_decode
from linnet_model.evaluation.score_run import test_domains
from linnet_model.network.model_config import require
from linnet_model.train.checkpoint import same_sizes
from linnet_model.train.trainer import uses_bfloat16
from linnet_model.train.vocabulary import prepare_tokenizer
from linnet_research.comparison.compare_models import (
    ABLATION,
    CSAN,
    MIXERS,
    ROWS,
    TECHNIQUES,
    WARM_UP,
)
from linnet_research.comparison.compare_results import inputs, kept, refuse_changed
from linnet_research.comparison.compare_runs import (
    Job,
    best_rate,
    pretraining_loss,
    train_and_score,
    validation_losses,
)
from linnet_research.comparison.compare_speed import (
    decoding_speed,
    timed_updates,
    training_speed,
    update_seconds,
)
from linnet_research.comparison.compare_statistics import name_of, ratios


def machine(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    names = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    return f"{names[0] if names else platform.processor()}, {len(names)} cores"


def version() -> str:
    """Returns the commit of the checkout that this package is in, else the package's version."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:  # no git
        return __version__
    return described.stdout.strip() or __version__


def test_sets(recipe: Recipe, options: argparse.Namespace) -> list[str]:
    """Returns the domains of the test sets, which must exist; of plain files the only one."""
    if any(recipe.data.plain("test")):
        require(
            set(options.test) <= {PLAIN_DOMAIN},
            f"--test names {', '.join(options.test)}, and the rows of data.test_source have the "
            f"name {PLAIN_DOMAIN}: leave out --test",
        )
        return [PLAIN_DOMAIN]
    domains = options.test or recipe.data.valid_domains[:1]
    require(
        len(domains) > 0,
        f"data.valid_domains of {options.recipe} is empty and --test is not given: name a test set",
    )
    return test_domains(options.data / recipe.data.folder, domains)


def command_of(parser: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    """Returns the command with the arguments that its results depend on, without the paths of this
    machine."""

    def shown(value: Any) -> str:
        return value.name if isinstance(value, Path) and value.is_absolute() else str(value)

    words = ["linnet-compare", "--recipe", shown(options.recipe), "--data", "DATA", "--out", "OUT"]
    for name, value in vars(options).items():
        if name in ("recipe", "data", "out", "pretrained", "decode", "report", "page"):
            continue
        if value != parser.get_default(name):
            words.append(f"--{name.replace('_', '-')}")
            if value is not True:
                words += map(shown, value if isinstance(value, list) else [value])
    return shlex.join(words)


def make_vocabulary(
    recipe: Recipe, folder: Path, start: Path | None, options: argparse.Namespace
) -> None:
    """Makes the vocabulary of a folder of runs, that of the folder `start` if given, unless it is
    there."""
    tables, found = to_tables(recipe), inputs(recipe, options)
    settings = {"data": tables["data"], "files": found["data"], "tokenizer": tables["tokenizer"]}
    settings["pieces"] = recipe.model.vocabulary
    settings["from"] = sha256(start / "source.spm") if start else None
    path = folder / "vocabulary.json"
    refuse_changed(path, settings)
    folder.mkdir(parents=True, exist_ok=True)
    kept(path, settings, lambda: prepare_tokenizer(recipe, options.data, folder, start).name)


def read_pretraining(base: Recipe, options: argparse.Namespace) -> Recipe:
    """Reads the recipe of the pre-trainings, whose models must have the sizes of the others."""
    recipe = read_recipe(options.pretrain, options.pretrain_set)
    task = recipe.bundle.task
    require(task == "pretrain", f"{options.pretrain} has the task {task}, --pretrain has pretrain")
    refuse_unequal(recipe, options.pretrain)
    same_sizes(base.model, recipe.model)
    return recipe


def pretrain(recipe: Recipe, options: argparse.Namespace) -> dict[str, Any]:
    """Pre-trains each mixer, if that has not been done for another comparison; returns the recipe
    and the validation losses. Also makes the vocabulary, which all models have."""
    folder, settings = options.pretrained, inputs(recipe, options)
    for mixer in options.mixers:
        refuse_changed(folder / f"{mixer}.json", settings)
    make_vocabulary(recipe, folder, None, options)

    def one(mixer: str) -> float:
        loss: float = kept(
            folder / f"{mixer}.json", settings, lambda: pretraining_loss(mixer, recipe, options)
        )
        print(f"{mixer:15} pre-trained, validation loss {loss:.3f}", flush=True)
        return loss

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        losses = list(pool.map(one, options.mixers))
    return settings | {"valid_nll": dict(zip(options.mixers, losses, strict=True))}


def settings_of_results(
    base: Recipe,
    start: Recipe | None,
    jobs: list[Job],
    tests: list[str],
    speeds: bool,
    options: argparse.Namespace,
) -> dict[Path, dict[str, Any]]:
    """Returns the file of each result, and the settings on which it depends."""
    out, common = options.out, inputs(base, options)
    if start:
        common["pretraining"] = inputs(start, options)
    timed = common | {"mixers": options.mixers, "rounds": options.rounds}
    updates = {"updates_timed": options.updates_timed}
    settings = {}
    if options.equal_time:  # what is trained depends on what is timed
        settings[out / "updates.json"] = common = timed | updates | {"equal_time": True}
    scored = common | {"test": " ".join(tests), "rows": options.rows}
    rates = common | {"rates": options.rates}
    settings |= {
        out / f"{job.name}.json": scored | (rates if job.mixer in options.tune else {})
        for job in jobs
    }
    settings |= {out / f"{mixer}-rates.json": rates for mixer in options.tune}
    if speeds:
        if not options.equal_time:  # else updates.json tells the speeds as well
            settings[out / "training.json"] = timed | updates
        settings[out / "decoding.json"] = timed | {"lengths": options.lengths}
    return settings


def equal_updates(base: Recipe, seconds: dict[str, list[float]]) -> dict[str, int]:
    """Returns mixer -> updates in the time of the first one's, from the seconds of an update."""
    return {
        mixer: max(1, round(base.train.updates / ratio))
        for mixer, ratio in (ratios(seconds) if seconds else {}).items()
    }


def refuse_unequal(recipe: Recipe, path: Path) -> None:
    """Refuses recipes whose trainings or scores a comparison would not make alike."""
    require(
        recipe.train.seconds == 0,
        f"{path} has train.seconds: a comparison trains for equal updates or --equal-time, add "
        "--set train.seconds=0, or --pretrain-set",
    )
    require(
        not recipe.data.styles,
        f"{path} has data.styles: linnet-score measures each style, a comparison would not",
    )


def compare(options: argparse.Namespace) -> dict[str, Any]:
    base, out = read_recipe(options.recipe, options.set), options.out
    refuse_unequal(base, options.recipe)
    if options.page:
        from linnet_research.comparison.compare_report import check_page

        check_page(options.page, name_of({"recipe": to_tables(base), "device": options.device}))
    tests, served = test_sets(base, options), base.bundle.task in SERVED
    command = find_decode(options.decode)
    if served and command is None:
        raise ConfigError("linnet-decode is not built, build it with ./start.sh --build")
    start = read_pretraining(base, options) if options.pretrain else None
    jobs = [
        Job(mixer, seed, pretrained)
        for seed in range(1, options.seeds + 1)
        for mixer in options.mixers
        for pretrained in ([False, True] if start else [False])
    ]
    # The speeds of pre-trained models are those of a comparison without.
    speeds = served and start is None
    settings = settings_of_results(base, start, jobs, tests, speeds, options)
    for path, wanted in settings.items():
        refuse_changed(path, wanted)
    pretraining = pretrain(start, options) if start else {}
    make_vocabulary(base, out, options.pretrained if start else None, options)

    def result_in(path: Path, make: Callable[[], Any]) -> Any:
        return kept(path, settings[path], make)

    timed, seconds = {}, {}
    if options.equal_time:
        timed = result_in(out / "updates.json", lambda: timed_updates(options, base))
        seconds = update_seconds(timed, options.updates_timed)
    updates = equal_updates(base, seconds)

    def losses_of(mixer: str) -> dict[str, float | None]:
        found: dict[str, float | None] = result_in(
            out / f"{mixer}-rates.json",
            lambda: validation_losses(mixer, base, updates.get(mixer), options),
        )
        return found

    tuned = {mixer: losses_of(mixer) for mixer in options.tune}
    best = {mixer: best_rate(mixer, losses) for mixer, losses in tuned.items()}

    def one(job: Job) -> dict[str, Any]:
        result: dict[str, Any] = result_in(
            out / f"{job.name}.json",
            lambda: train_and_score(
                job, best.get(job.mixer), updates.get(job.mixer), options, base, tests, command
            ),
        )
        scores = (f"{measure} {found[0]:.2f}" for measure, found in result["scores"].items())
        shown = "  ".join(scores) or "diverged"
        how = "  pre-trained" if job.pretrained else ""
        print(
            f"{job.mixer:15} seed {job.seed}{how}  {result['parameters']:>11,} parameters  {shown}",
            flush=True,
        )
        return result

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = list(pool.map(one, jobs))
    results = {
        "recipe": to_tables(base),
        "device": options.device,
        "machine": machine(options.device),
        "torch": torch.__version__,
        "bfloat16": uses_bfloat16(base.train, torch.device(options.device)),
        "rates": tuned,
        "runs": runs,
    }
    if options.equal_time:
        results["update_seconds"] = seconds
    if pretraining:
        results["pretraining"] = pretraining
    if speeds:
        assert command is not None
        results["training"] = (
            training_speed(timed)
            if timed
            else result_in(
                out / "training.json", lambda: training_speed(timed_updates(options, base))
            )
        )
        results["decoding"] = result_in(
            out / "decoding.json", lambda: decoding_speed(command, options)
        )
    return results


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--recipe", type=Path, required=True, help="recipe of the dynamic model")
    parser.add_argument(
        "--data", type=Path, required=True, help="contains the recipe's data.folder"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for all runs and results")
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="TABLE.KEY=VALUE",
        help="overrides keys of the recipe, value in TOML",
    )
    parser.add_argument(
        "--mixers",
        nargs="+",
        choices=ROWS,
        default=list(MIXERS),
        metavar="NAME",
        help=f"mixers ({', '.join(MIXERS)}), some with a warm-up of 350 updates "
        f"({', '.join(WARM_UP)}), rows of the ablation of Wu et al. 2019, table 3 "
        f"({', '.join(ABLATION)}), of Yang et al. 2019 ({', '.join(CSAN)}), or techniques for "
        f"little text ({', '.join(TECHNIQUES)})",
    )
    parser.add_argument(
        "--tune", nargs="+", choices=ROWS, default=[], metavar="NAME", help="mixers with --rates"
    )
    parser.add_argument(
        "--rates", type=float, nargs="+", default=[], help="learning rates to choose from"
    )
    parser.add_argument(
        "--equal-time", action="store_true", help="as many updates as the first mixer's time allows"
    )
    parser.add_argument(
        "--pretrain",
        type=Path,
        metavar="RECIPE",
        help="also trains from the weights of this recipe, pre-trained once for each mixer; all "
        "models have its vocabulary",
    )
    parser.add_argument(
        "--pretrain-set",
        nargs="+",
        default=[],
        metavar="TABLE.KEY=VALUE",
        help="overrides keys of the recipe of --pretrain",
    )
    parser.add_argument(
        "--pretrained",
        type=Path,
        metavar="DIR",
        help="folder of the pre-trainings, which comparisons may share; none: pretrained in --out",
    )
    parser.add_argument("--seeds", type=count_from(1), default=1, help="trainings per mixer")
    parser.add_argument("--jobs", type=count_from(1), default=1, help="concurrent trainings")
    parser.add_argument(
        "--test", nargs="+", default=[], help="test sets; none: the first of valid_domains"
    )
    parser.add_argument(
        "--rows", type=count_from(0), default=0, help="max rows of each test set; 0: all"
    )
    parser.add_argument(
        "--rounds", type=count_from(1), default=5, help="rounds of each speed measurement"
    )
    parser.add_argument(
        "--updates-timed", type=count_from(1), default=3, help="updates of each model per round"
    )
    parser.add_argument(
        "--lengths",
        type=count_from(1),
        nargs="+",
        default=[8, 16, 32, 64, 128, 256],
        help="sentence lengths",
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="device of training and decoding"
    )
    parser.add_argument("--decode", type=Path, help="path of linnet-decode")
    parser.add_argument(
        "--report", type=Path, help="folder for NAME-DEVICE.json, NAME that of the recipe's bundle"
    )
    parser.add_argument(
        "--page", type=Path, help="with --report: page whose table of this comparison is replaced"
    )
    options = parser.parse_args(arguments)
    require(not options.page or options.report, "--page needs --report, the folder of its results")
    require(
        bool(options.tune) == bool(options.rates),
        "--tune names mixers and --rates the learning rates to choose from: give both",
    )
    require(
        bool(options.pretrain) or not (options.pretrained or options.pretrain_set),
        "--pretrained and --pretrain-set need --pretrain, the recipe of the pre-trainings",
    )
    require(
        not (options.equal_time and options.pretrain),
        "--equal-time is given, and with --pretrain all mixers have equal updates: leave one out",
    )
    options.mixers = list(dict.fromkeys(options.mixers))
    options.rates = list(dict.fromkeys(options.rates))
    options.pretrained = options.pretrained or options.out / "pretrained"
    unused = [name for name in options.tune if name not in options.mixers]
    require(not unused, f"--tune {' '.join(unused)}: not one of --mixers")
    results = {"command": command_of(parser, options), "version": version(), **compare(options)}
    if options.report:
        from linnet_research.comparison.compare_report import write_report

        write_report(results, options.report, options.page)
    for mixer, found in results.get("training", {}).items():
        print(f"{mixer:15} trains {median(found):.0f} target tokens per second (median)")


if __name__ == "__main__":
    sys.exit(main())
