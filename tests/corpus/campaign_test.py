"""A small form of the campaign of faults; campaign.py runs the large one with a model."""

from __future__ import annotations

from campaign import run


def test_killed_and_stopped_processes_change_no_byte(bundle, decode, tmp_path):
    counts = run(
        bundle,
        tmp_path,
        lines=6000,
        faults=6,
        chunk_rows=250,
        interval=0.2,
        stall_timeout=3,
        seed=3,
    )
    assert counts["chunks"] == 24
    assert sum(counts["faults"].values()) >= 3  # the job may end before all have come
