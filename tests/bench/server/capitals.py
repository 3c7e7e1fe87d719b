"""Measures what a model without a capitals mark makes of texts in capitals.

Compares the answers to sentences in capitals with those to the same sentences in normal case,
converted to capitals: of the model alone (linnet-decode), and of a server, which lets it read lower
case (model/runtime/tokenizer/lower_capitals.h). The sentences with an abbreviation are sent alone,
and after the same sentence in normal case. Writes DIR/capitals.json; the machine does not matter.
Fetch the models first: linnet-model fetch en-pt --out MODELS, and pt-en.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sacrebleu

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

ROOT = Path(__file__).resolve().parents[3]
SENTENCES = ROOT / "tests/data/everyday-en.txt"
ANSWERS = ROOT / "tests/data/marian/students.json"
ABBREVIATIONS = {
    "en": """The BBC and CNN showed the report.
The FBI is looking for two men.
NATO will meet in June.
The UN sent food and water.
Please send the PDF by email.
The USA won the game.
Our GPS does not work here.
Turn off the TV before you leave.
He has a new PC with two GB of memory.
The EU has new rules for cars.
Call the police or the FBI.
The DVD player is broken.
Doctors found the DNA on the door.
My PIN does not work.
We need the VAT number.
The WHO warns of a new virus.
Keep the USB stick in your bag.
IBM sold its PC business.
The IT department is closed today.
The US and the UK signed it.
COVID-19 cases rise again.
The meeting starts at 5 PM.
The A4 motorway is closed.
HIV tests are free.
The CEO left the company.""",
    "pt": """A BBC e a CNN mostraram o relatório.
A ONU enviou comida e água.
A OTAN vai se reunir em junho.
O PIB caiu no ano passado.
Desligue a TV antes de sair.
Os EUA venceram o jogo.
A UE tem novas regras para carros.
O CEO deixou a empresa.
A OMS alerta para um novo vírus.
O DVD está quebrado.
Nosso GPS não funciona aqui.
Envie o PDF por email.
Preciso do seu CPF.
O FMI vai ajudar o país.
O FBI procura dois homens.
Os testes de HIV são gratuitos.
Os casos de COVID-19 sobem de novo.
A autoestrada A4 está fechada.
O PT ganhou a eleição.
Meu PIN não funciona.""",
}


def decoded(program: Path, bundle: Path, texts: Iterable[str]) -> list[str]:
    """The answers of the model alone, in capitals."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    command = [str(program), "--bundle", str(bundle)]
    done = subprocess.run(command, input=lines, text=True, capture_output=True, check=True)
    rows = (json.loads(line) for line in done.stdout.splitlines())
    return [row["hypotheses"][0]["text"].upper() for row in rows]


def served(linnet: Path, address: str, pair: tuple[str, str], texts: Iterable[str]) -> list[str]:
    """The answers of a server, in capitals: a sentence that it does not take for one in capitals
    counts by its words."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    command = [str(linnet), "translate", "--from", pair[0], "--to", pair[1], "--jsonl"]
    done = subprocess.run(
        [*command, "--answer-field", "answer"],
        env={"LINNET_SERVER": address},
        input=lines,
        text=True,
        capture_output=True,
        check=True,
    )
    return [json.loads(line)["answer"].upper() for line in done.stdout.splitlines()]


def compared(answers: list[str], wanted: list[str]) -> dict[str, Any]:
    same = sum(answer == want for answer, want in zip(answers, wanted, strict=True))
    chrf = sacrebleu.corpus_chrf(answers, [wanted]).score
    return {"sentences": len(wanted), "same": same, "chrf": round(chrf, 1)}


def measure(
    programs: Path, address: str, bundle: Path, pair: tuple[str, str], texts: list[str]
) -> dict[str, Any]:
    """The three ways to send the sentences."""
    wanted = decoded(programs / "linnet-decode", bundle, texts)
    shouted = [text.upper() for text in texts]
    both = [f"{text}\n{loud}" for text, loud in zip(texts, shouted, strict=True)]
    after = served(programs / "linnet", address, pair, both)
    return {
        "model alone": compared(decoded(programs / "linnet-decode", bundle, shouted), wanted),
        "server": compared(served(programs / "linnet", address, pair, shouted), wanted),
        "server, after normal case": compared([text.split("\n")[1] for text in after], wanted),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, required=True, help="folder of en-pt and pt-en")
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin")
    options = machine.parse(parser)
    everyday = {
        "en": SENTENCES.read_text("utf-8").splitlines(),
        "pt": json.loads(ANSWERS.read_text("utf-8"))["enpt"]["answers"],
    }
    command = [str(options.programs / "linnet-server"), "--models", str(options.models)]
    command += ["--listen", "127.0.0.1:0", "--log-level", "warning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            ready = process.stdout.readline()
            if not ready.startswith("ready grpc="):
                raise SystemExit(f"error: the server ended with {process.wait()}")
            address = ready.split("grpc=")[1].split()[0]
            result: dict[str, Any] = {"version": machine.facts([0])["version"]}
            for pair in (("en", "pt"), ("pt", "en")):
                sets = {
                    "everyday": everyday[pair[0]],
                    "abbreviations": ABBREVIATIONS[pair[0]].splitlines(),
                }
                bundle = options.models / "-".join(pair)
                result[machine.bundle_name(bundle)] = {
                    name: measure(options.programs, address, bundle, pair, texts)
                    for name, texts in sets.items()
                }
        finally:
            process.terminate()
    print(json.dumps(result, indent=1))
    machine.write_result(options.out / "capitals.json", result)


if __name__ == "__main__":
    main()
