"""The report of linnet-compare: a table and plots.

Speeds are the median over the rounds of the ratio to dynamic in the same round: on a busy machine
such ratios are stable, the times themselves are not.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

from linnet_model.command_line import parser_for
from linnet_model.config import ConfigError

COLOURS = {
    "dynamic": "#0072b2",
    "light": "#56b4e9",
    "depthwise": "#009e73",
    "dilated": "#f0e442",
    "self_attention": "#d55e00",
    "csan_1d": "#cc79a7",
    "csan_2d": "#999999",
    "ssru": "#000000",
}


def colour(name: str, names: list[str]) -> str:
    """The colour of a row: mixers always have the same, others one by their place."""
    others = [other for other in names if other not in COLOURS]
    return COLOURS.get(name) or f"C{others.index(name) % 10}"


def ratios(values: dict[str, list[float]]) -> dict[str, float]:
    """Returns mixer -> median over the rounds of its value divided by that of the first mixer."""
    first = values[next(iter(values))]
    return {
        m: median(v / f for v, f in zip(found, first, strict=True)) for m, found in values.items()
    }


def by_mixer(results: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    runs = defaultdict(list)
    for run in results["runs"]:
        runs[run["mixer"]].append(run)
    return runs


DIVERGED = "diverged"


def ended(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs that did not diverge: they have scores."""
    return [run for run in runs if run["scores"]]


def measures_of(results: dict[str, Any]) -> list[str]:
    runs = ended(results["runs"])
    if not runs:
        raise ConfigError(f"all trainings of {name_of(results)} diverged: lower its learning rate")
    return list(runs[0]["scores"])


def quality(runs: list[dict[str, Any]], measure: str) -> str:
    """Returns the score of those runs that did not diverge, and how many did."""
    left = ended(runs)
    if not left:
        return DIVERGED
    score, low, high = score_of(left, measure)
    failed = f", {len(runs) - len(left)} of {len(runs)} {DIVERGED}" if len(left) < len(runs) else ""
    return f"{score:.1f} ({low:.1f} to {high:.1f}){failed}"


# 97.5 % quantiles of Student's t by degrees of freedom; more seeds have that of 10, a little wide.
STUDENT_T = (0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def score_of(runs: list[dict[str, Any]], measure: str) -> tuple[float, float, float]:
    """Returns a score and its 95 % interval: of one run over resampled test sets, of several that
    of the mean over seeds (Student's t)."""
    scores = [run["scores"][measure] for run in runs]
    if len(scores) == 1:
        score, low, high = scores[0]
        return score, low, high
    return mean_of([score[0] for score in scores])


def mean_of(values: list[float]) -> tuple[float, float, float]:
    """Returns the mean of two or more values and its 95 % interval (Student's t)."""
    quantile = STUDENT_T[min(len(values), len(STUDENT_T)) - 1]
    half = quantile * stdev(values) / len(values) ** 0.5
    return mean(values), mean(values) - half, mean(values) + half


def table(results: dict[str, Any]) -> list[str]:
    runs, measures = by_mixer(results), measures_of(results)
    names, speed = speed_columns(results)
    head = ["mixer", "parameters", "validation loss", *measures, *names]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for mixer, found in runs.items():
        losses = [run["valid_nll"] for run in ended(found)]
        cells = [mixer, f"{found[0]['parameters']:,}"]
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
    shown = [lengths[0], lengths[len(lengths) // 2], lengths[-1]]
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
        f"{training['batch_target_tokens']} target tokens, test set {runs[0]['test']} "
        f"({runs[0]['rows']} rows), beam {recipe['bundle']['beam_size']}; scores: {scores}."
        f"{speeds(results)}{start(results)}{tuned} {made_by}"
    )


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


def plot_lengths(results: dict[str, Any], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.2))
    names = list(results["decoding"])
    for mixer, found in results["decoding"].items():
        lengths = [int(n) for n in found["sentence"]]
        times = [1000 * median(found["sentence"][str(n)]) / n for n in lengths]
        axes.plot(
            lengths,
            times,
            marker="o",
            label=mixer,
            color=colour(mixer, names),
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("tokens of source and of target")
    axes.set_ylabel("ms per target token, one sentence alone")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def plot_quality(results: dict[str, Any], path: Path) -> None:
    """Plots score against decoding speed."""
    runs, measure = by_mixer(results), measures_of(results)[0]
    speed = ratios({m: d["batch"] for m, d in results["decoding"].items()})
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for mixer in speed:
        middle, low, high = score_of(ended(runs[mixer]), measure)
        axes.errorbar(
            speed[mixer],
            middle,
            yerr=[[max(0.0, middle - low)], [max(0.0, high - middle)]],
            fmt="o",
            capsize=3,
            color=colour(mixer, list(runs)),
            label=mixer,
        )
    axes.set_xlabel(f"decoding speed, {next(iter(speed))} = 1")
    axes.set_ylabel(measure)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    matplotlib.rcParams["svg.hashsalt"] = "linnet"  # the same numbers give the same file
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def name_of(results: dict[str, Any]) -> str:
    """Names a comparison by its recipe and device: comparison-cpu."""
    return f"{results['recipe']['bundle']['name']}-{results['device']}"


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


def write_plots(results: dict[str, Any], folder: Path) -> list[Path]:
    """Draws NAME-lengths.svg (time per token against length) and NAME-quality.svg (quality
    against speed) into the folder, NAME as in name_of."""
    if "decoding" not in results:
        raise ConfigError(f"{name_of(results)} has no speeds, by which the plots are drawn")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [folder / f"{name_of(results)}-{name}.svg" for name in ("lengths", "quality")]
    plot_lengths(results, drawn[0])
    plot_quality(results, drawn[1])
    return drawn


def write_report(results: dict[str, Any], folder: Path, page: Path | None) -> None:
    """Writes NAME.json into the folder, and the table into its part of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    name = name_of(results)
    (folder / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if page is not None:
        lines = pretraining_table(results) if "pretraining" in results else table(results)
        renew(page, name, ["", settings(results), "", *lines, ""])


def main(arguments: list[str] | None = None) -> int:
    parser = parser_for(
        "Draws the plots of a comparison: time against length, quality against speed."
    )
    parser.add_argument("results", type=Path, help="NAME.json of linnet-compare --report")
    parser.add_argument("--out", type=Path, required=True, help="folder for the plots")
    options = parser.parse_args(arguments)
    results = json.loads(options.results.read_text(encoding="utf-8"))
    print(*write_plots(results, options.out), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
