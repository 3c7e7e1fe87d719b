"""python -m linnet_research.comparison.compare_report: writes the table of a comparison again.

The report of linnet-compare is a result file and a table on a page. This command makes the table of
the result file; linnet_research.comparison.compare_plots draws it. Speeds are the median over the
rounds of the ratio to the first mixer in the same round: on a busy machine such ratios are stable,
the times themselves are not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import mean, median
from typing import Any

from linnet_model.command_line import command, parser_for
from linnet_model.config import ConfigError
from linnet_model.json_files import read_json
from linnet_research.comparison.compare_statistics import (
    by_mixer,
    ended,
    mean_of,
    measures_of,
    name_of,
    ratios,
    score_of,
)

DIVERGED = "diverged"


def quality(runs: list[dict[str, Any]], measure: str) -> str:
    """Returns the score of those runs that did not diverge, and how many did."""
    left = ended(runs)
    if not left:
        return DIVERGED
    score, low, high = score_of(left, measure)
    failed = f", {len(runs) - len(left)} of {len(runs)} {DIVERGED}" if len(left) < len(runs) else ""
    return f"{score:.1f} ({low:.1f} to {high:.1f}){failed}"


def table(results: dict[str, Any]) -> list[str]:
    runs, measures = by_mixer(results), measures_of(results)
    names, speed = speed_columns(results)
    timed = "update_seconds" in results
    head = ["mixer", "parameters", *(["updates"] if timed else []), "validation loss"]
    head += [*measures, *names]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for mixer, found in runs.items():
        losses = [run["valid_nll"] for run in ended(found)]
        cells = [mixer, f"{found[0]['parameters']:,}"]
        cells += [f"{found[0]['updates']:,}"] if timed else []
        cells.append(f"{mean(losses):.3f}" if losses else DIVERGED)
        cells += [quality(found, measure) for measure in measures]
        cells += speed.get(mixer, ["–"] * len(names))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def speed_columns(results: dict[str, Any]) -> tuple[list[str], dict[str, list[str]]]:
    """Returns the names of the columns with speeds, and their cells by mixer; of a comparison
    without speeds none."""
    if "training" not in results:
        return [], {}
    decoded = results["decoding"]
    training = ratios({mixer: results["training"][mixer] for mixer in decoded})
    decoding = ratios({m: d["batch"] for m, d in results["decoding"].items()})
    lengths = list(next(iter(results["decoding"].values()))["sentence"])
    shown = list(dict.fromkeys([lengths[0], lengths[len(lengths) // 2], lengths[-1]]))
    cells = {
        mixer: [
            f"{training[mixer]:.2f}",
            f"{decoding[mixer]:.2f}",
            *(f"{median(found['sentence'][n]) * 1000:.0f}" for n in shown),
        ]
        for mixer, found in results["decoding"].items()
    }
    return ["training speed", "decoding speed", *(f"ms a sentence of {n}" for n in shown)], cells


def pretraining_table(results: dict[str, Any]) -> list[str]:
    """Returns the scores of each mixer from random weights and from pre-trained ones, and by how
    much the latter are better."""
    head = ["mixer", "parameters", "pre-training loss", "score", "from scratch", "pre-trained"]
    head.append("gain")
    lines = ["| " + " | ".join(head) + " |", "|---|---:|---:|---" + "|---:" * 3 + "|"]
    for mixer, runs in by_mixer(results).items():
        before, after = ([r for r in runs if r["pretrained"] is how] for how in (False, True))
        loss = results["pretraining"]["valid_nll"][mixer]
        for measure in measures_of(results):
            cells = [mixer, f"{runs[0]['parameters']:,}", f"{loss:.3f}", measure]
            cells += [quality(before, measure), quality(after, measure)]
            cells.append(gain(before, after, measure))
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def gain(before: list[dict[str, Any]], after: list[dict[str, Any]], measure: str) -> str:
    """Returns the mean difference of two runs of a seed, of several seeds with its interval."""
    differences = [
        b["scores"][measure][0] - a["scores"][measure][0]
        for a, b in zip(before, after, strict=True)
        if a["scores"] and b["scores"]
    ]
    if not differences:
        return "–"
    if len(differences) == 1:
        return f"{differences[0]:+.1f}"
    middle, low, high = mean_of(differences)
    return f"{middle:+.1f} ({low:+.1f} to {high:+.1f})"


def settings(results: dict[str, Any]) -> str:
    """Returns a paragraph with the conditions of the measurement."""
    recipe, runs = results["recipe"], ended(results["runs"])
    model, training = recipe["model"], recipe["train"]
    seeds = len({run["seed"] for run in runs})
    scores = (
        "in parentheses, 95 % of 1000 resampled test sets"
        if seeds == 1
        else f"mean of {seeds} seeds, in parentheses its 95 % interval (Student's t)"
    )
    made_by = "The command was not recorded."
    if "command" in results:
        made_by = f"Made by `{results['command']}`, Linnet {results['version']}."
    tuned = "".join(
        f" The learning rate of {mixer} is the best of "
        + ", ".join(
            f"{rate} ({DIVERGED if loss is None else format(loss, '.3f')})"
            for rate, loss in losses.items()
        )
        + " by the validation loss of one seed, in parentheses."
        for mixer, losses in results.get("rates", {}).items()
    )
    return (
        f"{results['machine']}; {recipe['bundle']['name']} recipe: width {model['width']}, "
        f"{len(model['encoder_kernels'])}+{len(model['decoder_kernels'])} layers, "
        f"{model['vocabulary']} pieces, {training['updates']} updates of at most "
        f"{training['batch_target_tokens']} target tokens{type_of(results)}{equal(results)}, "
        f"test set {runs[0]['test']} ({runs[0]['rows']} rows), "
        f"beam {recipe['bundle']['beam_size']}; scores: {scores}."
        f"{speeds(results)}{start(results)}{tuned} {made_by}"
    )


def equal(results: dict[str, Any]) -> str:
    """Says that the mixers had equal time, if they had."""
    if "update_seconds" not in results:
        return ""
    first = next(iter(results["update_seconds"]))
    return f" for {first} and, for each other mixer, as many as take as long"


def type_of(results: dict[str, Any]) -> str:
    """Names the type of the trainings, which older results do not hold."""
    if "bfloat16" not in results:
        return ""
    return f" in {'bfloat16' if results['bfloat16'] else 'float32'}"


def speeds(results: dict[str, Any]) -> str:
    """Returns sentences about the speeds, if there are any."""
    if "training" not in results:
        return ""
    first, threads = next(iter(results["decoding"])), results["recipe"]["train"]["threads"]
    tokens = median(results["training"][first])
    batch = median(results["decoding"][first]["batch"])
    unit = "CPU second" if results["device"] == "cpu" else "second"
    return (
        f" Speeds are ratios to {first} (median of rounds taken in turn), which trains "
        f"{tokens:.0f} target tokens a {unit} on {threads or 'all'} thread(s) and "
        f"decodes {batch:.0f} a second (float32, batches of 32, 30 tokens to 30, one thread). A "
        f"sentence of n tokens becomes one of n, alone."
    )


def start(results: dict[str, Any]) -> str:
    """Returns sentences about the pre-training, if there was one."""
    if "pretraining" not in results:
        return ""
    recipe = results["pretraining"]["recipe"]
    return (
        f" Each mixer was pre-trained once, by the {recipe['bundle']['name']} recipe: "
        f"{recipe['train']['updates']} updates of at most {recipe['train']['batch_source_tokens']} "
        "source tokens. A gain is the mean difference of two runs of a seed."
    )


def markers(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- end of {name} -->"


def check_page(page: Path, name: str) -> None:
    """Refuses a page without the two markers of that name."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    if [text.count(marker) for marker in markers(name)] != [1, 1]:
        begin, end = markers(name)
        raise ConfigError(f"{page} must hold {begin!r} and {end!r} once each, around the table")


def renew(page: Path, name: str, lines: list[str]) -> None:
    """Replaces the lines between the two markers of that name on the page."""
    check_page(page, name)
    begin, end = markers(name)
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    page.write_text(before + "\n".join([begin, *lines, end]) + after, encoding="utf-8")


# The part of a comparison that tables and plots read, as nested keys; True takes all below.
RECORDED: dict[str, Any] = {
    **dict.fromkeys(("command", "version", "device", "machine", "bfloat16", "rates"), True),
    **dict.fromkeys(("update_seconds", "runs", "training", "decoding"), True),
    "recipe": {
        "model": dict.fromkeys(("width", "encoder_kernels", "decoder_kernels", "vocabulary"), True),
        "train": dict.fromkeys(("updates", "batch_target_tokens", "threads"), True),
        "bundle": dict.fromkeys(("name", "beam_size"), True),
    },
    "pretraining": {
        "valid_nll": True,
        "recipe": {
            "train": dict.fromkeys(("updates", "batch_source_tokens"), True),
            "bundle": {"name": True},
        },
    },
}


def recorded(results: dict[str, Any], wanted: dict[str, Any] = RECORDED) -> dict[str, Any]:
    """Returns the part of the results that tables and plots read, numbers with seven digits."""
    return {
        key: rounded(value) if wanted[key] is True else recorded(value, wanted[key])
        for key, value in results.items()
        if key in wanted
    }


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(below) for key, below in value.items()}
    if isinstance(value, list):
        return [rounded(below) for below in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def as_lines(results: dict[str, Any]) -> str:
    """Returns results as JSON with a line for each key, and for each run."""
    lines = []
    for key, value in results.items():
        text = json.dumps(value)
        if key == "runs":
            text = "[\n  " + ",\n  ".join(json.dumps(run) for run in value) + "\n ]"
        lines.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_report(results: dict[str, Any], folder: Path, page: Path | None) -> None:
    """Writes what tables and plots need into NAME.json of the folder, NAME as in name_of, and the
    table into its part of the page."""
    results = recorded(results)
    name = name_of(results)
    if page is not None:
        check_page(page, name)
    lines = pretraining_table(results) if "pretraining" in results else table(results)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(as_lines(results), encoding="utf-8")
    if page is not None:
        renew(page, name, ["", settings(results), "", *lines, ""])


def read_results(path: Path) -> dict[str, Any]:
    """Reads a result file of linnet-compare --report."""
    found = read_json(path)
    if not isinstance(found, dict) or not {"recipe", "device", "runs"} <= found.keys():
        what = "there is no such file" if found is None else "it lacks recipe, device or runs"
        raise ConfigError(f"{path} is no result file of linnet-compare --report: {what}")
    return found


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__)
    parser.add_argument(
        "results", type=Path, nargs="+", help="NAME.json of linnet-compare --report"
    )
    parser.add_argument("--page", type=Path, required=True, help="page with the tables")
    options = parser.parse_args(arguments)
    for path in options.results:
        write_report(read_results(path), path.parent, options.page)


if __name__ == "__main__":
    sys.exit(main())
