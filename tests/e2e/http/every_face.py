"""One request of each face, and errors of a server."""

import grpc
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2

JOB = {"q": "a", "source": "en", "target": "de"}

# One request of each face, and where its error has the message.
FACES = {
    "libretranslate": ("/translate", JOB, lambda said: said["error"]),
    "deepl": ("/v2/translate", {"text": ["a"], "target_lang": "DE"}, lambda said: said["message"]),
    "deeplx": ("/translate", {"text": "a", "target_lang": "DE"}, lambda said: said["message"]),
    "google": (
        "/language/translate/v2",
        {"q": "a", "target": "de"},
        lambda said: said["error"]["message"],
    ),
    "native": (
        "/v1/translate",
        {"contents": ["a"], "target_language_code": "de"},
        lambda said: said["error"]["message"],
    ),
}


def error(code: grpc.StatusCode, reason: str, retry: float | None = None):
    """An error as linnet-server sends it, for FakeServer; as gRPC itself does without a reason."""
    if not reason:
        return code, ()
    status = status_pb2.Status(code=code.value[0], message=f"as told: {reason}")
    status.details.add().Pack(error_details_pb2.ErrorInfo(domain="linnet", reason=reason))
    if retry is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(int(1000 * retry))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return code, (("grpc-status-details-bin", status.SerializeToString()),)
