"""The tables of cores.py and compute_types.py say what was measured."""

import compute_types
import cores

MACHINE = {"cpu": "A CPU", "cores": 2, "features": ["avx2"], "version": "abc"}


def test_the_ratio_of_several_engines_to_one_is_taken_within_the_rounds():
    group = {
        "compute": "int8",
        "batch": 32,
        "beam": 5,
        "rounds": [[100.0, 90.0], [50.0, 60.0], [200.0, 200.0]],
        "bytes": [500_000_000, 900_000_000],
    }
    table = cores.markdown({"machine": MACHINE, "rounds": 3, "groups": [group]})
    # medians of 100, 50, 200 and of 90, 60, 200; of the ratios 0.9, 1.2 and 1
    assert "| int8 | 32 | 5 | 100 | 90 | 1.00 | 500 | 900 |" in table


def test_a_type_is_compared_with_float32():
    test = {"bundle": "m", "domain": "news", "rows": 200}
    for compute, bleu, others in (("float32", 30.0, 0), ("bfloat16", 30.5, 9), ("int8", 29.9, 13)):
        test[compute] = {"measures": {"BLEU": bleu, "chrF": 50.0}, "other_answers": others}
    table = compute_types.markdown({"machine": MACHINE, "tests": [test]})
    assert "| m | news | 200 | int8 | BLEU 29.90, chrF 50.00 | -0.10 | 13 (6.5 %) |" in table
    assert "| m | news | 200 | bfloat16 | BLEU 30.50, chrF 50.00 | +0.50 | 9 (4.5 %) |" in table
