"""ATTRIBUTION.md of a bundle: authors, licences and notices of the texts that it was trained on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from linnet_model.sources import sources_of
from linnet_model.styles import PARAGRAPHS, SENTENCES

ATTRIBUTION = "ATTRIBUTION.md"


def table(head: list[str], rows: Iterable[list[Any]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def cell(text: str) -> str:
    """Escapes a text for a cell of a table, which is one line."""
    return " ".join(text.split("\n")).strip().replace("|", "\\|").replace("<", "&lt;")


def data_of_stages(training: dict[str, Any]) -> dict[str, Any]:
    """Returns the domains with their shares, their terms and their counts of rows, of all stages of
    a training; those of the last stage that has the domain."""
    data: dict[str, Any] = {"domains": {}, "terms": {}, "train": {}}
    for stage in [*training.get("earlier_stages", []), training]:
        data["domains"] |= stage["recipe"]["data"]["domains"]
        data["terms"] |= stage["recipe"]["data"].get("terms", {})
        data["train"] |= stage["train"]
    return data


def attribution(name: str, training: dict[str, Any]) -> str:
    """Returns the page. Licences demand that it stays beside the weights."""
    lines = [
        f"# Attribution of {name}",
        "",
        "The training texts have the licences of this table. Keep this file beside the weights; "
        "check the licences before you publish the weights.",
        "",
        *data_part(training),
        *notice_part(data_of_stages(training)),
    ]
    return "\n".join(lines).rstrip() + "\n"


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
        *table(
            ["domain", "what", "rows", "share per epoch", "author", "licence", "attribution"], rows
        ),
        *(
            ["Rows and shares are those of the last stage that has the domain."]
            if training.get("earlier_stages")
            else []
        ),
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


def notice_part(data: dict[str, Any]) -> list[str]:
    """Returns the notices that licences of the sources require."""
    sources = sources_of(data["domains"], data.get("terms"))
    notices = [(d, s["notice"].strip()) for d, s in sources.items() if "notice" in s]
    if not notices:
        return []
    return ["## Notices", "", *(line for d, text in notices for line in (f"{d}: {text}", ""))]
