#!/usr/bin/env bash
# betterproto2 0.10.0 (PyPI) keeps two members of a oneof, when a second one is assigned and when both are on the wire, and sends both.
#
# Guess before the run: bytes and JSON are those of protobuf, of a oneof too, whose last member wins.
# Seen (betterproto2 0.10.0, protobuf 7.36.2, grpcio-tools 1.85.1, Python 3.11), for text = "x" and then number = 5:
#
#   protobuf: assigned number: 5, read number: 5
#   betterproto2: assigned {"text": "x", "number": 5}, read {"text": "x", "number": 5}
#   which_one_of: more than one field set in oneof
#   protobuf on that JSON: Message type "Answer" should not have multiple "result" oneof fields at "Answer".
#
# Two serialized messages in a row are their merge, so both may be on the wire.
#
# Who meets it: services that set an error where a result was. Client and server disagree on what the answer was.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check betterproto2==0.10.0 betterproto2-compiler==0.10.1 \
  grpcio-tools==1.85.1 protobuf==7.36.2
cd "$folder"

mkdir better
echo 'syntax = "proto3"; message Answer { oneof result { string text = 1; int32 number = 2; } }' >answer.proto
PATH="$folder/venv/bin:$PATH" venv/bin/python -m grpc_tools.protoc -I. --python_out=. --python_betterproto2_out=better answer.proto 2>log ||
  { cat log && exit 1; }
cat >check.py <<'P'
import betterproto2
from answer_pb2 import Answer as Real
from better import Answer
from google.protobuf import json_format

wire = Real(text="x").SerializeToString() + Real(number=5).SerializeToString()
real, read = Real(text="x"), Real.FromString(wire)
real.number = 5
print(f"protobuf: assigned {str(real).strip()}, read {str(read).strip()}")
assert real == read == Real(number=5)

answer, read = Answer(text="x"), Answer.parse(wire)
answer.number = 5
print(f"betterproto2: assigned {answer.to_json()}, read {read.to_json()}")
assert bytes(answer) == bytes(read) == wire
for name, call, expected in (
    ("which_one_of", lambda: betterproto2.which_one_of(answer, "result"), "more than one field set in oneof"),
    ("protobuf on that JSON", lambda: json_format.Parse(answer.to_json(), Real()), "should not have multiple"),
):
    try:
        call()
        raise AssertionError("no error")
    except (RuntimeError, json_format.ParseError) as error:
        print(f"{name}: {str(error).partition(':')[0]}")
        assert expected in str(error)
P
venv/bin/python check.py
echo "as described"
