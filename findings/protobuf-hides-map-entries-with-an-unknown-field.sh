#!/usr/bin/env bash
# protobuf 7.36.2 (PyPI) leaves an entry out of a map when the entry has a field that the schema does not know. Its implementation in pure
# Python keeps the entry.
#
# Guess before the run: both implementations give the same map.
# Seen (protobuf 7.36.2, grpcio-tools 1.85.1, Python 3.11, x86-64), the glossary that the receiver reads:
#
#   upb: {'house': 'Haus'}
#   python: {'house': 'Haus', 'printer': 'Drucker'}
#
# A sender that still has "repeated Term terms" with a note of its own as third field is compatible with a map on the wire, as protobuf
# documents for its maps. The entry is among the unknown fields of the message, so that it is still there when the message is written again.
#
# Who meets it: schemas that turn a repeated message into a map. Terms with a note are not in the glossary, and no error is given.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check protobuf==7.36.2 grpcio-tools==1.85.1
cd "$folder"

cat >old.proto <<'P'
syntax = "proto3";
package old;
message Term { string source = 1; string target = 2; string note = 3; }
message Glossary { repeated Term terms = 1; }
P
cat >new.proto <<'P'
syntax = "proto3";
package new;
message Glossary { map<string, string> terms = 1; }
P
venv/bin/python -m grpc_tools.protoc -I. --python_out=. old.proto new.proto

cat >check.py <<'P'
import os

import new_pb2
import old_pb2

kind = os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"]
terms = [old_pb2.Term(source="house", target="Haus"), old_pb2.Term(source="printer", target="Drucker", note="noun")]
read = new_pb2.Glossary.FromString(old_pb2.Glossary(terms=terms).SerializeToString())
seen = dict(sorted(read.terms.items()))
print(f"{kind}: {seen}")
assert seen == {"house": "Haus"} | ({"printer": "Drucker"} if kind == "python" else {})
assert b"Drucker" in read.SerializeToString()
P
for kind in upb python; do
  PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=$kind venv/bin/python check.py
done
echo "as described"
