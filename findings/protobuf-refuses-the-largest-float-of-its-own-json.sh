#!/usr/bin/env bash
# protobuf 7.36.2 (PyPI) writes the largest float in JSON as 3.4028235e+38 and refuses to read that: "Float value too large".
#
# No guess was written down before the run. What one expects: MessageToJson and Parse are made for each other, and a value that a field can
# hold comes back.
# Seen (protobuf 7.36.2, Python 3.11), a google.protobuf.FloatValue of the largest, of its negative and of the next smaller float:
#
#   3.4028234663852886e+38 -> 3.4028235e+38 -> Float value too large
#   -3.4028234663852886e+38 -> -3.4028235e+38 -> Float value too small
#   3.4028232635611926e+38 -> 3.4028233e+38 -> 3.4028232635611926e+38
#
# Nine digits name a float, and here they round up: the decimal number is above the largest float by less than half of a step, so rounding
# gives that float again. The binary format and the text format have no such error.
#
# Who meets it: messages with FLT_MAX for "no limit", or -FLT_MAX as a score that anything beats, which pass through JSON: gateways, golden
# files, logs that are played back.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check protobuf==7.36.2

"$folder/venv/bin/python" - <<'P'
import struct

from google.protobuf import json_format, text_format
from google.protobuf.wrappers_pb2 import FloatValue

largest, next_smaller = (struct.unpack("<f", struct.pack("<I", bits))[0] for bits in (0x7F7FFFFF, 0x7F7FFFFE))
for value, written, expected in (
    (largest, "3.4028235e+38", "Float value too large"),
    (-largest, "-3.4028235e+38", "Float value too small"),
    (next_smaller, "3.4028233e+38", "3.4028232635611926e+38"),
):
    message = FloatValue(value=value)
    json = json_format.MessageToJson(message)
    try:
        seen = str(json_format.Parse(json, FloatValue()).value)
    except json_format.ParseError as error:
        seen = "Float value too " + str(error).partition("Float value too ")[2].split()[0].rstrip(".")
    print(f"{value} -> {json} -> {seen}")
    assert (json, seen) == (written, expected)
    assert FloatValue.FromString(message.SerializeToString()) == message
    assert text_format.Parse(text_format.MessageToString(message), FloatValue()) == message
    assert struct.pack("<f", float(written)) == struct.pack("<f", value)
P
echo "as described"
