"""Tests kernel_counts.py: its parts, and where nvcc is, all of it for one file."""

import shutil
import subprocess
import sys

import pytest
from sandbox import ROOT

sys.path.insert(0, str(ROOT / "tests/gpu"))
import kernel_counts

LOG = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN3OneEv' for 'sm_90'
ptxas info    : Function properties for _ZN3OneEv
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 78 registers, used 1 barriers, 16384 bytes smem
ptxas info    : Compiling entry function '_ZN3TwoEv' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 9 registers
"""
LISTING = """
	.section	.text._ZN3OneEv,"ax",@progbits
.text._ZN3OneEv:
        .type           _ZN3OneEv,@function
_ZN3OneEv:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P2 SHFL.BFLY PT, R4, R3, 0x10, 0x1f ;
.L_x_1:
        /*0020*/               @P1 LDG.E.128 R8, desc[UR4][R2.64] ;
        /*0030*/              @UP0 VOTEU.ANY UR6, UPT, PT ;
        /*0040*/                   EXIT ;
.L_x_2:
        /*0050*/                   BRA `(.L_x_2);
        /*0060*/                   NOP;
"""


def test_resources_are_those_of_each_kernel():
    assert kernel_counts.resources(LOG) == {
        "_ZN3OneEv": {"registers": 78, "shared bytes": 16384, "spilled bytes": 20},
        "_ZN3TwoEv": {"registers": 9, "shared bytes": 0, "spilled bytes": 0},
    }


def test_instructions_are_counted_without_the_padding_behind_them():
    counts = {"instructions": 5, "exchanges": 2, "barriers": 0}
    counts |= {"global": 1, "shared": 0, "local": 0}
    assert kernel_counts.instructions(LISTING) == {"_ZN3OneEv": counts}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
def test_search_of_this_tree_equals_itself():
    root = kernel_counts.ROOT
    head = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True)
    if head.returncode:
        pytest.skip("this tree is no checkout")
    before = {"beam_search.cu": head.stdout.strip()}
    data = kernel_counts.measure(None, before, [(5, 600, "random")])
    labels = {it["of"] for it in data["kernels"]}
    assert labels == {"before", "now"}
    assert all(0 < it["registers"] <= 255 for it in data["kernels"])
    (search,) = data["searches"]
    assert search["same record"]
    assert search["now"] > 100
    report = kernel_counts.markdown(data)
    assert f"| random, V 600 | {search['before']:,.0f} | {search['now']:,.0f} | yes |" in report
