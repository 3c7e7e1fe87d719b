"""MODEL_CARD.md of a bundle, from its manifest, training.json, scores.json and judgements.json."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from linnet_model.bundle import model_sha256
from linnet_model.config import ConfigError
from linnet_model.json_files import read_json
from linnet_model.sources import sources_of
from linnet_model.styles import PARAGRAPHS, SENTENCES

# A training counts as converged with one of these.
CONVERGED_TOKENS = 150_000_000  # target tokens of a translator, over all continuations
STALE = 5  # validations in a row without a lower loss
JUDGEMENTS = "judgements.json"  # a reader's verdicts on answers
KEPT = "kept"  # the verdict on an answer that keeps meaning and facts


def table(head: list[str], rows: Iterable[list[Any]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def write_card(folder: Path) -> None:
    manifest, training = read_json(folder / "manifest.json"), read_json(folder / "training.json")
    if manifest is None or training is None:
        raise ConfigError(
            f"{folder} needs manifest.json and training.json for its card, run linnet-export again"
        )
    scores = read_json(folder / "scores.json")
    if scores and scores.get("model_sha256") != model_sha256(manifest):
        scores = None  # of other weights: before a conversion, or of an earlier version
    recipe, data = training["recipe"], data_of_stages(training)
    lines = [f"# {manifest['name']}, version {manifest['version']}", ""]
    if manifest["provisional"]:
        lines += ["**Provisional**: its training was short; better weights replace these.", ""]
    if recipe["bundle"].get("intended_use"):
        lines += [recipe["bundle"]["intended_use"].strip(), ""]
    lines += model_part(manifest, training) + data_part(training) + recipe_part(training)
    lines += score_part(scores, data["domains"]) + fact_part(scores, data) + example_part(scores)
    judgements = read_json(folder / JUDGEMENTS)
    if judgements and judgements["model_sha256"] == model_sha256(manifest):
        lines += judged_part(judgements)
    lines += notice_part(data)
    (folder / "MODEL_CARD.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


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


def data_of_stages(training: dict[str, Any]) -> dict[str, Any]:
    """Returns the domains with their shares, their terms and their counts of rows, of all stages of
    a training; those of the last stage that has the domain."""
    data: dict[str, Any] = {"domains": {}, "terms": {}, "train": {}}
    for stage in [*training.get("earlier_stages", []), training]:
        data["domains"] |= stage["recipe"]["data"]["domains"]
        data["terms"] |= stage["recipe"]["data"].get("terms", {})
        data["train"] |= stage["train"]
    return data


def data_part(training: dict[str, Any]) -> list[str]:
    data = data_of_stages(training)
    shares, train = data["domains"], data["train"]
    sources = sources_of(shares, data["terms"])
    rows = []
    for domain, source in sources.items():
        counts = train.get(domain, {})
        rows.append(
            [
                cell(domain),
                cell(source["what"]),
                f"{counts.get('rows', 0):,}",
                f"{shares[domain]:g}",
                *(cell(source[key]) for key in ("author", "licence", "attribution")),
            ]
        )
    added = ("copies", "facts", "joined", "echoes", SENTENCES, PARAGRAPHS)
    copies, facts, joined, echoes, sentences, paragraphs = (
        train.get(name, {}).get("rows", 0) for name in added
    )
    named = {source["licence"] for source in sources.values()} | {
        *training.get("init_licences", [])
    }
    averaged = [it for it in training.get("averaged_licences", []) if it not in named]
    return [
        "## Data",
        "",
        *table(
            ["domain", "what", "rows", "share per epoch", "author", "licence", "attribution"], rows
        ),
        *(
            ["Rows and shares are those of the last stage that has the domain."]
            if training.get("earlier_stages")
            else []
        ),
        "Licences of the texts are in the table; check them before you publish the weights.",
        *(
            [
                f"The training started from other weights ({training['init_from']}): the table "
                "lacks texts that only those were trained on"
                + (
                    f"; behind those are texts under {'; '.join(training['init_licences'])}."
                    if training.get("init_licences")
                    else "."
                )
            ]
            if training.get("init_from")
            else []
        ),
        *(
            [
                f"The weights of {training['averaged_with']}, with which those of this training "
                f"are averaged, were also trained on texts under {'; '.join(averaged)}."
            ]
            if averaged
            else []
        ),
        *(
            [f"Beside these, {copies:,} rows of made-up names, numbers and addresses to be copied."]
            if copies
            else []
        ),
        *(
            [f"{facts:,} rows are made-up sentences with facts, translated by rule."]
            if facts
            else []
        ),
        *([f"{joined:,} rows are two to four others of a domain, joined."] if joined else []),
        *([f"{echoes:,} rows have their target as their source, too."] if echoes else []),
        *(
            [
                f"Beside these, {sentences:,} rows whose summary is the sentence of a text that is "
                f"closest to its title, and {paragraphs:,} with the two or three closest."
            ]
            if sentences
            else []
        ),
        "",
    ]


def recipe_part(training: dict[str, Any]) -> list[str]:
    position, train = training["position"], training["recipe"]["train"]
    valid = training["last_validation"] or {}
    earlier = position.get("earlier_target_tokens", 0)
    return [
        "## Recipe",
        "",
        f"All settings as used are in training.json{recipe_file(training)}.",
        *stage_part(training),
        f"{position['update']:,} updates over {position['target_tokens']:,} target tokens "
        f"({position['epoch']} whole epochs), {position['seconds'] / 3600:.1f} hours"
        f"{', the last ones' if training.get('moved') else ''} on {training['device']} with "
        f"{training['threads']} thread(s). AdamW, peak learning rate {train['learning_rate']:g}, "
        "label smoothing "
        f"{train['label_smoothing']:g}, running average of the weights "
        f"({train['average_decay']:g}).",
        *(
            [
                f"The trainings that it continues had {earlier:,} target tokens: "
                f"{earlier + position['target_tokens']:,} in all."
            ]
            if earlier
            else []
        ),
        how_it_ended(training),
        *([training["note"]] if training.get("note") else []),
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
                f"and of {training['averaged_with']} (Wortsman et al. 2022, arXiv 2109.01903). The "
                "scores are theirs, the validation is that of this training alone."
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
    if scores is None:
        return ["## Scores", "", "Not measured yet: run `linnet-score`.", ""]
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
        rows.append(
            [
                test["domain"] + (f" ({test['style']})" if "style" in test else ""),
                f"{test['rows']}{part}",
                f"{test['length_ratio']:.2f}",
                f"{test['looping_share']:.2%}",
                *[f"{test['model'][m]:.1f}" for m in names],
            ]
        )
    return [
        "## Scores",
        "",
        f"Decoded by {scores['engine']}, {scores['options']}.",
        "",
        *table(["test set", "rows", "length ratio", "looping", *names], rows),
        "Baselines that need no model, on the same rows:",
        "",
        *table(
            ["test set", "baseline", *names],
            [
                [test["domain"], name, *[f"{values[m]:.1f}" for m in names]]
                for test in scores["tests"]
                for name, values in test["baselines"].items()
            ],
        ),
        *(
            [f"A baseline is as good as the model or better, by some measure: {', '.join(behind)}."]
            if behind
            else []
        ),
        "Length ratio: words of all answers by words of their references. Looping: answers that "
        "repeat up to six words three times or more in a row, or a syllable four times, where the "
        "source does not.",
        *[f"{name}: `{signature}`" for name, signature in scores["signatures"].items()],
        *([f"\nNot among the domains of the data: {', '.join(unseen)}."] if unseen else []),
        "",
    ]


def fact_part(scores: dict[str, Any] | None, data: dict[str, Any]) -> list[str]:
    """Returns how many facts of made-up sentences are carried over."""
    facts = scores.get("facts") if scores else None
    if facts is None:
        return []
    kinds = {kind: f"{share:.1%}" for kind, share in facts["kinds"].items()}
    return [
        "## Facts",
        "",
        f"Of the facts in {facts['sentences']:,} made-up sentences "
        "(`linnet_research.evaluation.facts`), the share that the answers carry over:",
        *(
            [
                "(The sentences are not trained on; but some of the frames of the made-up training "
                "sentences were written where this measurement had shown misses.)"
            ]
            if data["train"].get("facts", {}).get("rows")
            else []
        ),
        "",
        *table(
            [*kinds, "all", "sentences with all their facts"],
            [[*kinds.values(), f"{facts['all']:.1%}", f"{facts['whole_sentences']:.1%}"]],
        ),
    ]


def example_part(scores: dict[str, Any] | None) -> list[str]:
    """Returns the recipe's examples and those of the card with the model's answers."""
    examples = scores.get("examples", []) if scores else []
    if not examples:
        return []
    columns = list(examples[0])  # text and answer, or text and each style
    rows = [[cell(example[column]) for column in columns] for example in examples]
    return [
        "## Examples",
        "",
        "Not chosen for their answers.",
        "",
        *table(columns, rows),
    ]


def judged_part(judgements: dict[str, Any]) -> list[str]:
    """Returns how many answers to everyday sentences a reader found right, and all of them."""
    rows = judgements["judged"]
    kept = sum(row["verdict"] == KEPT for row in rows)
    unjudged = sum(not row["verdict"] for row in rows)
    goal = judgements["goal"]
    return [
        "## Everyday sentences",
        "",
        f"Of {len(rows)} everyday sentences that were written down before any was translated, "
        f"{kept} answers keep meaning and facts"
        + (f", {unjudged} are not judged yet" if unjudged else "")
        + f". The goal is {goal}"
        + (f": {goal - kept} too few." if kept < goal and not unjudged else "."),
        f"Decoded by {judgements['engine']}, {judgements['options']}. The verdicts were made by "
        "reading the answers, not by a program; the rubric:",
        "",
        f"> {judgements['rubric']}",
        "",
        *table(
            ["text", "answer", "verdict"],
            [
                [cell(row["text"]), cell(row["answer"]), ": ".join(filter(None, verdict(row)))]
                for row in rows
            ],
        ),
    ]


def verdict(row: dict[str, str]) -> tuple[str, str]:
    return row["verdict"] or "not judged yet", cell(row["reason"])


def cell(text: str) -> str:
    """Escapes a text for a cell of a table, which is one line."""
    return " ".join(text.split("\n")).strip().replace("|", "\\|").replace("<", "&lt;")


def notice_part(data: dict[str, Any]) -> list[str]:
    """Returns the notices that licences of the sources require."""
    sources = sources_of(data["domains"], data.get("terms"))
    notices = [(d, s["notice"].strip()) for d, s in sources.items() if "notice" in s]
    if not notices:
        return []
    return ["## Notices", "", *(line for d, text in notices for line in (f"{d}: {text}", ""))]
