"""Tests that checkpoints are read without executing pickled code."""

from __future__ import annotations

import argparse
import io
import os
import pickle
import shutil
import sys
import zipfile
from collections import OrderedDict, defaultdict
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import fairseq_oracle as oracle

from linnet_model.config import ConfigError
from linnet_model.importers.fairseq.checkpoint import read_checkpoint
from linnet_model.importers.fairseq.import_fairseq import read_model

SAFE = {"args": argparse.Namespace(arch="lightconv"), "model": {"w": torch.ones(2)}}


class Call:
    """Pickles as a call of `function`, which an unsafe reader executes."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def save(content, path: Path, zipped: bool = True) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "2019"])
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (eval, "builtins.eval"),
        (exec, "builtins.exec"),
        (getattr, "builtins.getattr"),
        (os.system, "posix.system"),
        (shutil.rmtree, "shutil.rmtree"),
        (pickle.loads, "pickle.loads"),
        (torch.hub.load, "torch.hub.load"),
        (torch.load, "torch.serialization.load"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refuses_malicious_checkpoint_by_name(tmp_path, function, name, zipped):
    trap = tmp_path / "sprung"
    content = SAFE | {"extra_state": Call(function, f"open({str(trap)!r}, 'w')")}
    path = save(content, tmp_path / "bad.pt", zipped)
    with pytest.raises(ConfigError, match=rf"bad\.pt names {name},.* nothing was executed"):
        read_checkpoint(path)
    assert not trap.exists()


def test_unsafe_reader_executes_malicious_checkpoint(tmp_path):
    trap = tmp_path / "sprung"
    path = save({"x": Call(eval, f"open({str(trap)!r}, 'w')")}, tmp_path / "bad.pt")
    torch.load(path, weights_only=False)
    assert trap.exists()


def test_arguments_of_allowed_names_cannot_call(tmp_path):
    """The default of an option and the factory of a defaultdict are calls."""
    content = SAFE | {"extra_state": defaultdict(eval)}
    with pytest.raises(ConfigError, match=r"builtins\.eval"):
        read_checkpoint(save(content, tmp_path / "bad.pt"))
    read = read_checkpoint(save(SAFE | {"extra_state": defaultdict(dict)}, tmp_path / "good.pt"))
    assert read.options == {"arch": "lightconv"}


def test_refuses_names_hidden_in_newer_pickles(tmp_path):
    """Protocol 4 takes names from strings on the stack; torch.save does not write it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("bad/data.pkl", pickle.dumps({"x": Call(eval, "1")}, protocol=4))
    path = tmp_path / "bad.pt"
    path.write_bytes(file.getvalue())
    with pytest.raises(ConfigError, match=r"names builtins\.eval"):
        read_checkpoint(path)


def test_never_imports_names_that_look_like_fairseq(tmp_path, monkeypatch):
    (tmp_path / "fairseq").mkdir()
    trap = tmp_path / "imported"
    (tmp_path / "fairseq" / "__init__.py").write_text(f"open({str(trap)!r}, 'w')\n")
    pickled = pickle.dumps(SAFE | {"model": {}, "meter": None}, protocol=2)
    pickled = pickled.replace(b"X\x05\x00\x00\x00meterq", b"cfairseq.meters\nAverageMeter\nq")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "fairseq", raising=False)
    path = tmp_path / "good.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("good/data.pkl", pickled)
        archive.writestr("good/version", "3\n")
        archive.writestr("good/byteorder", "little")
    assert b"AverageMeter" in pickled
    assert read_checkpoint(path).options == {"arch": "lightconv"}
    assert not trap.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"args": SAFE["args"]}, "holds no model"),
        ([1, 2], "holds no model"),
        ({"model": {"w": torch.ones(1)}}, "neither args nor cfg"),
        ({"args": SAFE["args"], "model": {"w": 3}}, "'w' of type int among its weights"),
        ({"cfg": {"task": {}}, "model": {}}, "the cfg names no model"),
    ],
)
def test_refuses_other_checkpoints(tmp_path, content, message):
    with pytest.raises(ConfigError, match=message):
        read_checkpoint(save(content, tmp_path / "x.pt"))


@pytest.mark.parametrize("junk", [b"", b"hello\n", b"PK\x03\x04 and no more", b"\x80\x02}q\x00."])
def test_refuses_files_that_torch_did_not_write(tmp_path, junk):
    path = tmp_path / "junk.pt"
    path.write_bytes(junk)
    with pytest.raises(ConfigError, match=r"junk\.pt"):
        read_checkpoint(path)
    with pytest.raises(ConfigError, match="no checkpoint at"):
        read_checkpoint(tmp_path / "none.pt")


def test_refuses_tensors_that_repeat_what_the_file_holds(tmp_path):
    weights = {"encoder.embed_tokens.weight": torch.zeros(1, 1).expand(2**24, 2**14)}
    file = save({"model": weights, "args": argparse.Namespace()}, tmp_path / "model.pt")
    with pytest.raises(ConfigError, match=r"has the shape \[16777216, 16384\] and 4 bytes"):
        read_checkpoint(file)


def test_refuses_compressed_entries(tmp_path):
    file = tmp_path / "model.pt"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1000))
    with pytest.raises(ConfigError, match=r"has the compressed entry 'archive/data\.pkl'"):
        read_checkpoint(file)


def test_refuses_truncated_file(tmp_path):
    for name, kind in oracle.CHECKPOINTS[:2]:
        whole = oracle.checkpoint(name, kind).read_bytes()
        for share in (0.01, 0.5, 0.99):
            path = tmp_path / "cut.pt"
            path.write_bytes(whole[: int(len(whole) * share)])
            with pytest.raises(ConfigError, match=r"cut\.pt"):
                read_checkpoint(path)


@pytest.mark.parametrize(
    "name", [name for name, model in oracle.MODELS.items() if len(model["checkpoints"]) > 1]
)
def test_generations_of_a_model_read_identically(name):
    first, *others = [
        read_model(oracle.checkpoint(name, kind)) for kind in oracle.MODELS[name]["checkpoints"]
    ]
    for other in others:
        assert other.facts == first.facts
        mine, theirs = first.model.state_dict(), other.model.state_dict()
        assert mine.keys() == theirs.keys()
        for key, weight in mine.items():
            assert torch.equal(weight, theirs[key]), key


@pytest.mark.parametrize("name", oracle.MODELS)
def test_reads_options_of_model(name):
    wanted = oracle.MODELS[name]["config"]
    for kind in oracle.MODELS[name]["checkpoints"]:
        read = read_model(oracle.checkpoint(name, kind))
        config = read.facts.config
        assert (config.vocabulary, config.target_vocabulary) == (
            wanted["source_vocabulary"],
            wanted["target_vocabulary"],
        )
        assert (config.width, config.ffn_width, config.heads) == (
            wanted["encoder_embed_dim"],
            wanted["ffn_embed_dim"],
            wanted["heads"],
        )
        assert config.pre_norm == wanted["normalize_before"]
        sharing = {"all": "all", "decoder": "output", "none": "none"}
        assert config.sharing == sharing[wanted["tied_embeddings"]]
        assert (read.facts.max_source_tokens, read.facts.max_target_tokens) == (1024, 1023)
        mixers = {"dynamic": "dynamic", "lightweight": "light", None: "self_attention"}
        for side in ("encoder", "decoder"):
            layers = wanted[f"{side}_layers"]
            assert getattr(config, f"{side}_mixers") == (
                [mixers[wanted[f"{side}_conv_type"]]] * layers
            )
            assert getattr(config, f"{side}_kernels") == (
                wanted[f"{side}_kernel_sizes"] or [0] * layers
            )
        if wanted["encoder_glu"] is not None:
            assert config.glu == wanted["encoder_glu"]


def test_reads_half_precision_and_parameters(tmp_path):
    read = read_checkpoint(oracle.checkpoint("light-noglu-prenorm-untied"))
    args = argparse.Namespace(**read.options)
    half = OrderedDict((k, torch.nn.Parameter(v.half(), False)) for k, v in read.weights.items())
    model = read_model(save({"args": args, "model": half}, tmp_path / "half.pt")).model
    weight = read.weights["encoder.layers.0.linear1.weight"]
    assert torch.equal(model.encoder[0].mixer.linear1.weight, weight.half().float())


def test_reads_nested_options_of_new_transformer(tmp_path):
    """TransformerConfig nests options of encoder and decoder, and refers to values of the task."""
    read = read_checkpoint(oracle.checkpoint("transformer-postnorm-tied", "cfg"))
    flat = read.options
    model = {k: v for k, v in flat.items() if not k.startswith(("encoder_", "decoder_"))}
    for side in ("encoder", "decoder"):
        model[side] = {k[8:]: v for k, v in flat.items() if k.startswith(f"{side}_")}
    model["decoder"] |= {"input_dim": "${model.decoder.embed_dim}"}
    model |= {"max_source_positions": "${task.max_source_positions}"}
    cfg = {"model": model, "task": {"_name": "translation", "max_source_positions": 77}}
    nested = read_model(save({"cfg": cfg, "model": read.weights}, tmp_path / "nested.pt"))
    plain = read_model(oracle.checkpoint("transformer-postnorm-tied", "cfg"))
    assert nested.facts.config == plain.facts.config
    assert nested.facts.max_source_tokens == 77
