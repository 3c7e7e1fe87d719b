"""The table of layers.py holds for the whole tree, and the check finds what breaks it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from layering import CPP, ROOT, Tree, circles, imports, layer_of, targets, violations
from layers import LAYERS


def test_dependencies_point_down_only() -> None:
    found = violations(ROOT)
    assert not found, "\n" + "\n".join(found)


def test_nothing_outside_research_reads_its_files() -> None:
    """Imports are in the table; this finds a path."""
    code = {path: text for path, text in Tree(ROOT).files.items() if path.startswith("tests/")}
    assert any("tests/data/" in text for text in code.values())
    readers = {path for path, text in code.items() if "/linnet_research/" in text}
    assert readers == {"tests/layers.py", "tests/layering_test.py"}  # which hold the rule


def test_every_layer_was_read() -> None:
    layers = {layer_of(path) for path in Tree(ROOT).files}
    assert {
        "proto",
        "model/ops",
        "model/runtime",
        "model/torch",
        "server/schedule",
        "client",
    } <= layers
    assert {"linnet_client", "linnet_proto"} <= targets(Tree(ROOT)).keys()


def test_python_tests_have_names_of_their_own() -> None:
    """pytest imports a test by its file's name alone, and takes no second one of that name."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("*_test.py"))
    assert [name for name, files in names.items() if files > 1] == []


def test_python_imports_have_no_circle() -> None:
    found = circles(imports(Tree(ROOT)))
    assert not found, "\n" + "\n".join(found)


def test_a_circle_of_imports_is_found(tree) -> None:
    root = tree(
        {
            "client/python/linnet/a.py": "from . import b\n",
            "client/python/linnet/b.py": "if TYPE_CHECKING:\n    from .v1.c import C\n",
            "client/python/linnet/v1/c.py": "def late():\n    from linnet.a import A\n",
            "client/python/linnet/d.py": "import a\nfrom .b import B\n",
        }
    )
    folder = "client/python/linnet"
    way = [f"{folder}/{name}.py" for name in ("a", "b", "v1/c", "a")]
    assert circles(imports(Tree(root))) == [" -> ".join(way)]


def test_the_table_has_no_circle() -> None:
    def below(layer: str, way: tuple[str, ...] = ()) -> None:
        assert layer not in way, " -> ".join((*way, layer))
        for what in LAYERS.get(layer, "").split():
            below(what, (*way, layer))

    for layer in LAYERS:
        below(layer)


ENGINE = {
    "model/torch/engine.h": "#include <vector>\n",
    "server/schedule/batcher.h": '#include "absl/status/status.h"\n',
}
FORBIDDEN = [
    (
        "client/a.cc",
        '#include "server/schedule/batcher.h"\n',
        "client/a.cc:1: client may not use server/schedule",
    ),
    ("server/text/a.cc", "\n#include <torch/script.h>\n", "a.cc:2: server/text may not use torch"),
    ("server/text/a.cc", "#  include <grpcpp/grpcpp.h>\n", "may not use grpc"),
    ("server/text/a.cc", '#include "linnet/v1/text_service.grpc.pb.h"\n', "may not use grpc"),
    ("server/text/a.cc", '#include "model/torch/engine.h"\n', "may not use model/torch"),
    ("server/schedule/batcher.cc", "#include <prometheus/counter.h>\n", "may not use prometheus"),
    ("model/ops/a.cc", '#include "absl/strings/str_cat.h"\n', "model/ops may not use absl"),
    ("model/runtime/a.h", "#include <ATen/ATen.h>\n", "may not use torch"),
    ("model/torch/a.h", '#include "server/schedule/batcher.h"\n', "may not use server/schedule"),
    ("client/a.cc", "#include <boost/asio.hpp>\n", "boost/asio.hpp, which this test does not know"),
    ("util/a.cc", "#include <vector>\n", "util/a.cc:1: belongs to no layer"),
    ("model/linnet_model/a.cc", "", "model/linnet_model is Python alone"),
    ("model/linnet_model/a.py", "import os\nimport grpc\n", "a.py:2: model/linnet_model may not"),
    ("model/linnet_model/a.py", "if 1:\n    from pytest import raises\n", "not use python-tests"),
    ("model/linnet_model/a.py", "import linnet_research.data.tatoeba\n", "not use research/"),
    ("tests/" "bench/a.py", "from linnet_research import data\n", "not use research/"),
    ("proto/linnet/v1/a.proto", 'import "google/api/http.proto";\n', "google/api/http.proto"),
    ("client/CMakeLists.txt", "target_link_libraries(c linnet::torch_cpu)", "may not use torch"),
    ("tests/client/CMakeLists.txt", "linnet_test(t LIBRARIES prometheus-cpp::core)", "prometheus"),
]  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path):
    def build(files: dict[str, str]) -> Path:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return tmp_path

    return build


@pytest.mark.parametrize(("path", "text", "message"), FORBIDDEN)
def test_a_forbidden_use_is_found(tree, path: str, text: str, message: str) -> None:
    found = violations(tree({**ENGINE, path: text}))
    assert len(found) == 1, found
    assert message in found[0]


def test_what_is_allowed_is_not_reported(tree) -> None:
    allowed_uses = {
        "server/rpc/main.cc": '#include <sys/socket.h>\n#include "model/torch/engine.h"\n',
        "server/metrics/a.h": "#include <prometheus/counter.h>\n// #include <torch/torch.h>\n",
        "server/rpc/call.h": '#include <grpcpp/grpcpp.h>\n#include "server/schedule/batcher.h"\n',
        "client/library/client.cc": '#include "linnet/v1/text_service.grpc.pb.h"\n',
        "model/linnet_model/a.py": "import json\nfrom torch import nn\nfrom . import b\n",
        "build/x/a.cc": "#include <boost/asio.hpp>\n",
    }
    assert violations(tree({**ENGINE, **allowed_uses})) == []


def test_what_a_header_drags_in_is_found_with_the_way(tree) -> None:
    files = {
        "model/torch/engine.h": '#include "model/torch/module.h"\n',
        "model/torch/module.h": "#include <torch/script.h>\n",
        "server/text/main.cc": '#include <vector>\n#include "model/torch/engine.h"\n',
    }
    (found,) = violations(tree(files))
    assert found.startswith("server/text/main.cc:2: server/text may not use torch")
    assert (
        "server/text/main.cc -> model/torch/engine.h -> model/torch/module.h -> torch/script.h"
        in found
    )


@pytest.mark.parametrize(
    ("link", "count"),
    [
        ("PUBLIC linnet::torch_cpu", 1),
        ("PRIVATE linnet::torch_cpu", 0),
        ("PUBLIC absl::time PRIVATE linnet::torch_cpu", 0),
        ("PUBLIC $<LINK_ONLY:linnet::torch_cpu>", 0),
    ],
)
def test_what_a_target_links_in_public_is_found(tree, link: str, count: int) -> None:
    files = {
        "model/torch/CMakeLists.txt": f"target_link_libraries(linnet_torch {link})",
        "server/decode/CMakeLists.txt": "target_link_libraries(linnet-decode PRIVATE linnet_torch)",
    }
    found = violations(tree(files))
    assert len(found) == count, found
    assert all("linnet-decode -> linnet_torch -> linnet::torch_cpu" in line for line in found)


# sentencepiece_adapter includes SentencePiece's header, which excludes abseil's.
def test_cpp_has_one_type_of_string_views() -> None:
    users = [
        path
        for path, text in Tree(ROOT).files.items()
        if Path(path).suffix in CPP
        and "std::string_view" in text
        and not path.startswith("model/runtime/tokenizer/sentencepiece_adapter.")
    ]
    assert users == [], "use absl::string_view: in Debian's abseil the two are different types"
