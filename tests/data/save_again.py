"""Loads tiny models with the transformers that runs this, and saves them again with what it makes
of some texts: python save_again.py FOLDERS OUT TEXTS. Each folder gets ids.json, the ids of the
texts, and logits.pt, the logits of fixed tokens."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import torch
import transformers


def tokens(seed: int, count: int) -> torch.Tensor:
    return torch.randint(4, 150, (1, count), generator=torch.Generator().manual_seed(seed))


def save_again(folder: Path, out: Path, texts: list[str]) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    (out / "ids.json").write_text(json.dumps([tokenizer(text).input_ids for text in texts]))
    start = torch.tensor([[model.config.decoder_start_token_id]])
    previous = torch.cat([start, tokens(2, 13)[:, :-1]], dim=1)
    with torch.no_grad():
        logits = model(input_ids=tokens(1, 17), decoder_input_ids=previous).logits
    torch.save(logits, out / "logits.pt")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    lines = Path(sys.argv[3]).read_text(encoding="utf-8").split("\n")
    for place in sorted(Path(sys.argv[1]).iterdir()):
        save_again(place, Path(sys.argv[2]) / place.name, lines)
