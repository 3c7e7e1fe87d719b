"""MODEL_CARD.md of a bundle, from its manifest, training.json, scores.json and judgements.json.

A card has a few hundred words. These files and ATTRIBUTION.md have the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

from linnet_model.bundle import model_sha256
from linnet_model.config import ConfigError
from linnet_model.export.attribution import (
    ATTRIBUTION,
    attribution,
    cell,
    data_of_stages,
    table,
)
from linnet_model.json_files import read_json

# A training counts as converged with one of these.
CONVERGED_TOKENS = 150_000_000  # target tokens of a translator, over all continuations
STALE = 5  # validations in a row without a lower loss
JUDGEMENTS = "judgements.json"  # a reader's verdicts on answers
KEPT = "kept"  # the verdict on an answer that keeps meaning and facts
MAX_WORDS = 700  # of a card
EXAMPLE_WORDS = 40  # of the examples that a card shows
LOST_ANSWERS = 3  # that a card shows


def write_card(folder: Path) -> None:
    """Writes MODEL_CARD.md and ATTRIBUTION.md."""
    manifest, training = read_json(folder / "manifest.json"), read_json(folder / "training.json")
    if manifest is None or training is None:
        raise ConfigError(
            f"{folder} needs manifest.json and training.json for its card, run linnet-export again"
        )
    scores = read_json(folder / "scores.json")
    if scores and scores.get("model_sha256") != model_sha256(manifest):
        scores = None  # of other weights: before a conversion, or of an earlier version
    judgements = read_json(folder / JUDGEMENTS)
    if judgements and judgements["model_sha256"] != model_sha256(manifest):
        judgements = None
    recipe, data = training["recipe"], data_of_stages(training)
    lines = [f"# {manifest['name']}, version {manifest['version']}", ""]
    if manifest["provisional"]:
        lines += ["**Provisional**: its training was short; better weights replace these.", ""]
    if recipe["bundle"].get("intended_use"):
        lines += [recipe["bundle"]["intended_use"].strip(), ""]
    lines += use_part(manifest, recipe) + model_part(manifest, training)
    lines += score_part(scores, data["domains"]) + fact_part(scores, data)
    lines += judged_part(judgements) if judgements else []
    lines += example_part(scores) + recipe_part(training) + licence_part()
    (folder / "MODEL_CARD.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    text = attribution(f"{manifest['name']}, version {manifest['version']}", training)
    (folder / ATTRIBUTION).write_text(text, encoding="utf-8")


def use_part(manifest: dict[str, Any], recipe: dict[str, Any]) -> list[str]:
    """Returns the commands that run the bundle."""
    examples = recipe["bundle"].get("examples") or ["…"]
    text = examples[0].replace("'", "\u2019")
    return [
        "## Use",
        "",
        "```sh",
        f"linnet-server --models MODELS   # the folder that holds {manifest['name']}/",
        f'echo \'{{"text": "{text}"}}\' | linnet-decode --bundle MODELS/{manifest["name"]}',
        "```",
        "",
    ]


MIXERS = {
    "dynamic_conv": "DynamicConv (Wu et al. 2019)",
    "light_conv": "LightConv (Wu et al. 2019)",
    "depthwise_conv": "depthwise convolution",
    "dilated_conv": "dilated convolution (Tay et al. 2021)",
    "full_conv": "full convolution",
    "self_attention": "self-attention (Vaswani et al. 2017)",
    "csan_1d": "convolutional self-attention (Yang et al. 2019)",
    "csan_2d": "convolutional self-attention over heads (Yang et al. 2019)",
    "ssru": "simpler simple recurrent unit (Kim et al. 2019)",
}


def mixers_named(architecture: dict[str, Any]) -> str:
    """Returns the names of a model's mixers, each once."""
    names = dict.fromkeys(architecture["encoder_mixers"] + architecture["decoder_mixers"])
    return ", ".join(MIXERS.get(name, name) for name in names)


def has_gate(shape: dict[str, Any], sizes: dict[str, Any]) -> bool:
    """Returns whether a layer has a gate, which only convolutions have."""
    mixers = shape["encoder_mixers"] + shape["decoder_mixers"]
    return bool(sizes["glu"]) and any(name.endswith("_conv") for name in mixers)


def model_part(manifest: dict[str, Any], training: dict[str, Any]) -> list[str]:
    shape, sizes = manifest["architecture"], training["recipe"]["model"]
    # Older bundles do not say it; linnet-train makes tokenizers like this.
    tokenizer = training.get("tokenizer", {"bytes": True, "normalises": False})
    return [
        "## Model",
        "",
        f"{mixers_named(shape)} encoder-decoder, {shape['parameters']:,} parameters, "
        "stored as "
        f"{shape['weight_type']}. Width {shape['model_dimension']}, feed-forward "
        f"{shape['feed_forward_dimension']}, "
        f"{shape['heads']} heads, "
        f"{'GLU, ' if has_gate(shape, sizes) else ''}"
        f"{'pre' if sizes['pre_norm'] else 'post'}-norm, "
        f"kernels {shape['encoder_kernel_sizes']} in the encoder and "
        f"{shape['decoder_kernel_sizes']} in the decoder. "
        f"{manifest['vocabulary']['size']} SentencePiece pieces for both sides, "
        f"{'with' if tokenizer['bytes'] else 'without'} bytes for what they lack; "
        f"the text is {'' if tokenizer['normalises'] else 'not '}normalised.",
        "",
        f"It reads {manifest['limits']['max_source_tokens']} tokens and was trained on sources of "
        "at most "
        f"{training['recipe']['data']['max_source_tokens']}"
        + (
            " (longer ones cut there)."
            if training["recipe"]["data"]["cut_source"]
            else " (longer ones left out)."
        ),
        "",
    ]


def recipe_part(training: dict[str, Any]) -> list[str]:
    position, valid = training["position"], training["last_validation"] or {}
    tokens = position["target_tokens"]
    earlier = position.get("earlier_target_tokens", 0)
    return [
        "## Training",
        "",
        f"training.json has all settings{recipe_file(training)}"
        + (", and a note on the trainings before." if training.get("note") else "."),
        *stage_part(training),
        f"{position['update']:,} updates over {tokens:,} target tokens"
        + (
            f", after {earlier:,} of the trainings before ({earlier + tokens:,} in all)"
            if earlier
            else ""
        )
        + f"; {position['seconds'] / 3600:.1f} hours"
        f"{', the last ones' if training.get('moved') else ''} on {training['device']} with "
        f"{training['threads']} thread(s).",
        how_it_ended(training),
        *(
            [
                f"Validation: {valid['nll_all']:.3f} nats per token after {valid['update']:,} "
                "updates."
            ]
            if valid
            else []
        ),
        *(
            [
                f"The weights of this training are the mean of the averages in its last "
                f"{training['averaged_checkpoints']} checkpoints; the validation is that of the "
                "last one alone."
            ]
            if training.get("averaged_checkpoints", 1) > 1
            else []
        ),
        *(
            [
                f"The stored weights are the mean of those of this training{share_of(training)} "
                f"and of {training['averaged_with']} (Wortsman et al. 2022). The scores are "
                "theirs, the validation is that of this training alone."
            ]
            if "averaged_with" in training
            else []
        ),
        "",
    ]


def stage_part(training: dict[str, Any]) -> list[str]:
    """Returns a sentence on the stages before the last one, if there are any."""
    stages = [
        f"`{stage['name']}` ({stage['position']['update']:,} updates over "
        f"{stage['position']['target_tokens']:,} target tokens)"
        for stage in training.get("earlier_stages", [])
    ]
    return [f"Stages before the last one, which follows: {', '.join(stages)}."] if stages else []


def how_it_ended(training: dict[str, Any]) -> str:
    """Returns which criterion of convergence the training met when its set length ended it.

    A training of before validations_without_gain was recorded cannot have met that criterion if
    it had fewer validations.
    """
    position, train = training["position"], training["recipe"]["train"]
    length = f"{train['seconds']:,.0f} seconds" if train.get("seconds") else ""
    length = length or f"{train['updates']:,} updates"
    if training.get("ended") is False:  # older bundles do not say
        return (
            f"These are weights from before the end of the training, whose set length is {length}."
        )
    met: dict[str, bool] = {}
    if training["recipe"]["bundle"]["task"] == "translate":
        tokens = position["target_tokens"] + position.get("earlier_target_tokens", 0)
        met[f"at least {CONVERGED_TOKENS:,} target tokens in all"] = tokens >= CONVERGED_TOKENS
    validations = position["update"] // train["valid_updates"] + 1
    without_gain = training.get("validations_without_gain", None if validations > STALE else 0)
    if without_gain is not None:
        met[f"{STALE} validations in a row without gain"] = without_gain >= STALE
    reached = [name for name, is_met in met.items() if is_met]
    if reached:
        return f"The training ended at its set length, {length}, with {' and '.join(reached)}."
    return (
        f"The training ended at its set length, {length}, not by convergence: it did not have "
        f"{' or '.join(met) or 'a criterion that is recorded'}."
    )


def share_of(training: dict[str, Any]) -> str:
    """Returns the share of the training's weights in a mean; earlier bundles do not say it."""
    share = training.get("averaged_share")
    return "" if share is None else f", which count {share:.0%},"


def recipe_file(training: dict[str, Any]) -> str:
    """Names the recipe's file and the keys that were set on the command line, if they are known."""
    if "recipe_file" not in training:
        return ""
    changes = ", ".join(f"`{setting}`" for setting in training["set"])
    return f": `{training['recipe_file']}`" + (f" with {changes}" if changes else "")


def score_part(scores: dict[str, Any] | None, trained: Iterable[str]) -> list[str]:
    """Returns a row for each test set. The baseline is the best one that needs no model, by the
    first measure."""
    if scores is None:
        return ["## Quality", "", "Not measured yet: run `linnet-score`.", ""]
    names = scores["measures"]
    unseen = [t["domain"] for t in scores["tests"] if t["domain"] not in trained]
    behind = [
        t["domain"]
        for t in scores["tests"]
        if any(b[m] >= t["model"][m] for b in t["baselines"].values() for m in names)
    ]
    rows = []
    for test in scores["tests"]:
        part = "" if test["rows"] == test["rows_of_file"] else f" of {test['rows_of_file']}"
        baseline = max((found[names[0]] for found in test["baselines"].values()), default=None)
        rows.append(
            [
                test["domain"] + (f" ({test['style']})" if "style" in test else ""),
                f"{test['rows']}{part}",
                *[f"{test['model'][m]:.1f}" for m in names],
                "–" if baseline is None else f"{baseline:.1f}",
                f"{test['length_ratio']:.2f}",
                f"{test['looping_share']:.2%}",
            ]
        )
    head = ["test set", "rows", *names, f"baseline, {names[0]}", "length ratio", "looping"]
    return [
        "## Quality",
        "",
        f"Decoded by {scores['engine']}, {scores['options']}. scores.json has all baselines and "
        "the signatures of the measures.",
        "",
        *table(head, rows),
        "The baseline needs no model: a copy, or the first sentences, of the source. Length ratio: "
        "words of all answers by words of their references. Looping: answers that repeat "
        "themselves where the source does not.",
        *(
            [f"A baseline is as good as the model or better, by some measure: {', '.join(behind)}."]
            if behind
            else []
        ),
        *([f"Not among the domains of the data: {', '.join(unseen)}."] if unseen else []),
        "",
    ]


def fact_part(scores: dict[str, Any] | None, data: dict[str, Any]) -> list[str]:
    """Returns how many facts of made-up sentences are carried over."""
    facts = scores.get("facts") if scores else None
    if facts is None:
        return []
    kinds = ", ".join(f"{kind} {share:.0%}" for kind, share in facts["kinds"].items())
    return [
        f"The answers keep {facts['all']:.1%} of the facts in {facts['sentences']:,} made-up "
        f"sentences ({kinds})."
        + (
            " None is trained on, but some made-up training sentences were written where earlier "
            "models had lost facts."
            if data["train"].get("facts", {}).get("rows")
            else ""
        ),
        "",
    ]


def example_part(scores: dict[str, Any] | None) -> list[str]:
    """Returns the first examples with the model's answers."""
    examples = scores.get("examples", []) if scores else []
    counts = accumulate(sum(len(text.split()) for text in row.values()) for row in examples)
    shown = sum(count <= EXAMPLE_WORDS for count in counts) or min(1, len(examples))
    if not examples:
        return []
    columns = list(examples[0])  # text and answer, or text and each style
    rows = [[cell(example[column]) for column in columns] for example in examples[:shown]]
    return [
        "## Examples",
        "",
        f"The first {shown} of {len(examples)} in scores.json. None was chosen for its answer.",
        "",
        *table(columns, rows),
    ]


def judged_part(judgements: dict[str, Any]) -> list[str]:
    """Returns how many answers to everyday sentences a reader found right, and some others."""
    rows = judgements["judged"]
    kept = sum(row["verdict"] == KEPT for row in rows)
    unjudged = sum(not row["verdict"] for row in rows)
    goal = judgements["goal"]
    lost = [row for row in rows if row["verdict"] not in ("", KEPT)][:LOST_ANSWERS]
    return [
        "## Everyday sentences",
        "",
        f"Of {len(rows)} everyday sentences that were written down before any was translated, "
        f"{kept} answers keep meaning and facts"
        + (f", {unjudged} are not judged yet" if unjudged else "")
        + f". The goal is {goal}"
        + (f": {goal - kept} too few." if kept < goal and not unjudged else ".")
        + f" A reader judged them; {JUDGEMENTS} has the rubric and all verdicts"
        + (", such as these:" if lost else "."),
        "",
        *(table(["text", "answer", "verdict"], [verdict(row) for row in lost]) if lost else []),
    ]


def verdict(row: dict[str, str]) -> list[str]:
    return [cell(row["text"]), cell(row["answer"]), cell(f"{row['verdict']}: {row['reason']}")]


def licence_part() -> list[str]:
    return [
        "## Licence",
        "",
        f"The training texts have licences of their own. [{ATTRIBUTION}]({ATTRIBUTION}) names the "
        "author, licence and attribution of each, and repeats the notices that must stay with the "
        "weights. `license` in manifest.json sums them up.",
        "",
    ]
