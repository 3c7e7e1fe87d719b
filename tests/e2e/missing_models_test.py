"""Bundles that cannot be loaded: the start fails and names them, unless --allow-missing is set."""

import shutil

import grpc
import pytest


@pytest.fixture
def models(bundles, tmp_path):
    """A folder with one intact bundle and two that cannot be loaded, one of them with an odd
    name."""
    folder = tmp_path / "models"
    shutil.copytree(bundles / "en-de", folder / "en-de")
    shutil.copytree(bundles / "en-summary", folder / "en-summary")
    (folder / "en-summary" / "model.pt").write_bytes(b"no model")
    (folder / "a b,c").mkdir()
    (folder / "a b,c" / "manifest.json").write_text("{")
    return folder


def flags(models) -> list[str]:
    return ["--models", str(models), "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]


@pytest.mark.parametrize("more", [[], ["--load-on-demand", "true"]])
def test_start_names_each_bundle_its_cause_and_the_flag(run_server, models, more):
    status, out, error = run_server(*flags(models), *more)
    assert status == 1
    assert "ready" not in out
    told = error[error.index("linnet-server: ") :].splitlines()
    assert told[0] == f"linnet-server: 2 of 3 bundles in {models} cannot be loaded"
    assert told[1].startswith(f"  a b,c: {models}/a b,c/manifest.json is not a manifest: ")
    assert told[2].startswith("  en-summary: ")
    assert f"{models}/en-summary/model.pt" in told[2]
    way_out = "set --allow-missing true to serve the others without them"
    assert told[3] == f"repair or remove them, or {way_out}"
    assert len(told) == 4


def test_allowed_start_serves_the_others_and_says_what_is_missing(start, models):
    server = start("--allow-missing", "true", models=models)
    assert server.missing == ["a\\x20b\\x2cc", "en-summary"]
    assert server.translate("one").translations
    with pytest.raises(grpc.RpcError) as unknown:
        server.summarize("one")
    assert unknown.value.code() == grpc.StatusCode.NOT_FOUND
    assert server.health("") == 1, "some calls can be answered"
    assert server.health("model/en-de") == 1
    assert server.health("model/en-summary") == 2
    assert server.metric('linnet_model_serving{model="en-summary"}') == 0
    assert server.metric('linnet_model_serving{model="en-de"}') == 1
    assert server.log.read_text().count("model_not_loaded") == 2
    assert server.stop() == 0


def test_complete_start_says_nothing_of_missing_models(server):
    assert server.missing == []


def test_no_model_at_all_fails_the_start_in_any_case(run_server, models):
    shutil.rmtree(models / "en-de")
    status, _, error = run_server(*flags(models), "--allow-missing", "true")
    assert status == 1
    assert f"2 of 2 bundles in {models} cannot be loaded" in error
    assert "allow-missing" not in error[error.index("2 of 2") :]


def test_bundle_without_valid_signature_is_missing(run_server, start, models, tmp_path):
    shutil.rmtree(models / "en-summary")
    shutil.rmtree(models / "a b,c")
    keys = tmp_path / "keys.pem"
    keys.write_text(
        "-----BEGIN PUBLIC KEY-----\n"
        "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
        "-----END PUBLIC KEY-----\n"
    )
    status, _, error = run_server(*flags(models), "--bundle-key", str(keys))
    assert status == 1
    assert f"1 of 1 bundle in {models} cannot be loaded\n  en-de: " in error
    assert "manifest.json.sig" in error
