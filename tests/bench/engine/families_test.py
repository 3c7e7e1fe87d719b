"""Tests the benchmark of imported models on the smallest ones. No time is asserted."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import families
import pytest

SMALL = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize("name", ["Firefox, tiny", "OPUS-MT", "M2M-100, 418M", "bart-large-cnn"])
def test_family_is_imported_and_measured(name, tmp_path, program, monkeypatch):
    library = program("linnet-decode").parents[1] / "lib/liblinnet_ops.so"
    monkeypatch.setenv("LINNET_OPS_LIBRARY", str(library))
    monkeypatch.setattr(families, "convert", lambda folder, out: None)  # needs CTranslate2
    family = families.FAMILIES[name]
    rows = 700 if family.importer else 100
    sizes = (SMALL if family.importer else {}) | {"vocab_size": rows}
    small = replace(family, sizes=sizes, source=6, target=4, batches=(1, 2))
    if not family.importer:
        small = replace(small, kind="tiny")
    monkeypatch.setitem(families.FAMILIES, name, small)
    options = argparse.Namespace(
        compute="int8",
        threads=1,
        rounds=2,
        max_drift=1e9,
        programs=program("linnet-decode").parent,
        scratch=tmp_path,
    )
    found = families.measure(name, options)
    linnet = found["engines"]["linnet"]
    assert [len(rounds) for rounds in linnet["rounds"].values()] == [2, 2]
    assert linnet["peak_bytes"] >= linnet["working_bytes"] > 10e6
    assert not any(tmp_path.iterdir())


def test_other_families_of_the_same_machine_are_kept(tmp_path):
    path = tmp_path / "families.json"
    facts = {"machine": {"cpu": "A", "version": "1"}, "compute": "int8"}
    measured = [{"family": name, "version": "1"} for name in ("OPUS-MT", "mBART-50")]
    path.write_text(json.dumps(facts | {"families": measured}))
    newer = facts | {"machine": {"cpu": "A", "version": "2"}}
    data = families.kept(path, newer, ["mBART-50"])
    assert data == newer | {"families": [{"family": "OPUS-MT", "version": "1"}]}
    assert families.kept(path, newer | {"compute": "float32"}, [])["families"] == []
    assert families.kept(tmp_path / "none.json", newer, [])["families"] == []
