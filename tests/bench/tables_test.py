"""Tests the tables of beams.py, cores.py, compute_types.py, families.py and
load_generator.py."""

import beams
import compute_types
import cores
import families
import load_generator

MACHINE = {"cpu": "A CPU", "cores": 2, "features": ["avx2"], "version": "abc"}


def test_ratio_of_engines_is_computed_within_rounds():
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


def test_measures_are_listed_by_beam():
    found = {str(beam): {"BLEU": 30.0 + beam, "chrF": 50.0} for beam in beams.BEAMS}
    test = {"bundle": "m", "domain": "news", "rows": 200, "beams": found}
    table = beams.markdown({"machine": MACHINE, "tests": [test]})
    assert "| m, 200 rows of news, BLEU | 31.0 | 32.0 | 34.0 | 35.0 | 38.0 |" in table
    assert "| m, 200 rows of news, chrF | 50.0 | 50.0 | 50.0 | 50.0 | 50.0 |" in table


def test_type_is_compared_with_float32():
    test = {"bundle": "m", "domain": "news", "rows": 200}
    for compute, bleu, others in (("float32", 30.0, 0), ("bfloat16", 30.5, 9), ("int8", 29.9, 13)):
        test[compute] = {"measures": {"BLEU": bleu, "chrF": 50.0}, "other_answers": others}
    table = compute_types.markdown({"machine": MACHINE, "tests": [test]})
    assert "| m | news | 200 | int8 | BLEU 29.90, chrF 50.00 | -0.10 | 13 (6.5 %) |" in table
    assert "| m | news | 200 | bfloat16 | BLEU 30.50, chrF 50.00 | +0.50 | 9 (4.5 %) |" in table


def test_types_that_a_processor_lacks_have_no_row():
    scores = {"measures": {"BLEU": 30.0}, "other_answers": 0}
    test = {"bundle": "m", "domain": "news", "rows": 200}
    test |= dict.fromkeys(("float32", "int8", "unquantized"), scores)
    table = compute_types.markdown({"machine": MACHINE, "tests": [test]})
    rows = [line.split("|")[4].strip() for line in table.splitlines() if line.startswith("| m ")]
    assert rows == ["float32", "int8", "unquantized"]


def test_family_is_compared_with_the_faster_peer():
    def engine(peak: float, resident: float, one: list[float], eight: list[float]) -> dict:
        rounds = {"1": one, "8": eight}
        return {"peak_bytes": peak, "working_bytes": resident, "rounds": rounds}

    engines = {
        "linnet": engine(289.4e6, 150e6, [30.0, 20.0, 25.0], [90.0, 90.0, 90.0]),
        "ctranslate2": engine(340e6, 158e6, [5.0, 10.0, 15.0], [60.0, 60.0, 60.0]),
        "ctranslate2 workers": engine(345e6, 160e6, [9.0, 9.0, 9.0], [75.0, 75.0, 75.0]),
    }
    alone = {"linnet": engine(183e6, 181e6, [861.0], [744.0])}
    data = {"machine": MACHINE, "compute": "int8", "threads": 2, "rounds": 3, "families": []}
    for name, found in (("OPUS-MT", engines), ("Firefox", alone)):
        one = {"family": name, "source": 30, "target": 20, "engines": found}
        data["families"].append(one)
    table = families.markdown(data)
    assert "| OPUS-MT | 30 → 20 | 289 | 340 | 150 | 158 | 25 | 2.5 × | 90 (8) | 1.2 × |" in table
    assert "| Firefox | 30 → 20 | 183 | — | 181 | — | 861 | — | 744 (8) | — |" in table


def test_stall_is_shown_from_due_time_and_from_sending():
    def run(rate, intended, sent):
        return {
            "offered_per_second": rate,
            "answered_per_second": rate,
            "cpu_us_per_call": 123.4,
            "core_share": 0.5,
            "late_share": 0.0125,
            "from_intended_ms": dict.fromkeys(("p50", "p90", "p99", "max"), intended),
            "from_sent_ms": dict.fromkeys(("p50", "p90", "p99", "max"), sent),
        }

    results = {
        "machine": MACHINE,
        "settings": {"cores": [0, 1], "seconds": 3, "rounds": 3},
        "closed": [{"in_flight": 16, "channels": 4, **run(5000, 0.5, 0.25)}],
        "open": [{"share": 0.7, **run(3500, 0.5, 0.25)}],
        "stall": {"open": run(200, 900, 4), "closed": run(800, 1, 1)},
    }
    table = load_generator.markdown(results)
    assert "| 16 | 4 | 5000 | 123 | 50% | 0.25 | 0.25 |" in table
    assert "| 70% | 3500 | 3500 | 1.25% | 50% | 0.50 | 0.50 |" in table
    assert "from sending | 200 | 4.00 | 4.00 | 4.00 | 4.00 |" in table
    assert "from the time due | 200 | 900 | 900 | 900 | 900 |" in table
    assert "20% of the calls" in table
