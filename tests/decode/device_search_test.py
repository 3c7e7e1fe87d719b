"""linnet-decode --search device prints the same bytes as the host search, with every mixer."""

import random

import pytest

VOCABULARY = 97
MIXERS = (
    "dynamic",
    "light",
    "depthwise",
    "dilated",
    "self_attention",
    "csan_1d",
    "csan_2d",
    "ssru",
)


def any_lines(count: int) -> list[dict]:
    """Searches of all kinds; sampling always runs on the host, in the same steps."""
    rng = random.Random(1)
    lines = []
    for i in range(count):
        options = {"beam_size": rng.randint(1, 6), "n_best": 1}
        options |= {"max_target_tokens": rng.randint(1, 40)}
        options |= rng.choice([{}, {"no_repeat_ngram_size": 2}, {"temperature": 0.7}])
        options |= rng.choice([{}, {"max_ngram_repeats": 1}, {"max_ngram_repeats": 2}])
        options |= {"seed": 5} if i % 7 == 3 else {}
        source = [rng.randrange(4, VOCABULARY) for _ in range(rng.randint(0, 30))]
        lines.append({"source_ids": [*source, 2], "options": options})
    return lines


@pytest.mark.parametrize("mixer", MIXERS)
def test_prints_same_bytes_as_host_search(run, tmp_path, mixer):
    from linnet_model.export.random_bundle import random_bundle

    bundle = tmp_path / mixer
    random_bundle(bundle, "tiny", VOCABULARY, seed=3, mixer=mixer, weight_type="float32")
    lines = any_lines(30)
    host, device = (
        run(bundle, "--search", search, lines=lines, threads=1) for search in ("host", "device")
    )
    assert (host.status, device.status) == (0, 0), device.stderr
    assert len(host.answers) == 30
    assert device.answers == host.answers
