"""The Python client of Linnet.

    from linnet import Client, TranslateRequest

    with Client("127.0.0.1:50051") as client:
        request = TranslateRequest(contents=["A dog runs."], target_language_code="de")
        print(client.translate(request).translations[0].text)

`AsyncClient` is the same for asyncio. Requests and answers are the messages of the API
(proto/linnet/v1/text_service.proto documents every field); errors are `LinnetError`.
"""

from .aio import AsyncClient, AsyncStream
from .client import Client, Stream
from .errors import LinnetError
from .options import Options, Retry, Tls
from .v1.text_service_pb2 import (
    DecodingOptions,
    DetectLanguageRequest,
    DetectLanguageResponse,
    GetModelRequest,
    GetModelResponse,
    ListModelsRequest,
    ListModelsResponse,
    LongInput,
    Priority,
    ScorePair,
    ScoreRequest,
    ScoreResponse,
    ScoringOptions,
    SummarizeRequest,
    SummarizeResponse,
    TextPart,
    TranslateRequest,
    TranslateResponse,
)

__all__ = [
    "AsyncClient",
    "AsyncStream",
    "Client",
    "DecodingOptions",
    "DetectLanguageRequest",
    "DetectLanguageResponse",
    "GetModelRequest",
    "GetModelResponse",
    "LinnetError",
    "ListModelsRequest",
    "ListModelsResponse",
    "LongInput",
    "Options",
    "Priority",
    "Retry",
    "ScorePair",
    "ScoreRequest",
    "ScoreResponse",
    "ScoringOptions",
    "Stream",
    "SummarizeRequest",
    "SummarizeResponse",
    "TextPart",
    "Tls",
    "TranslateRequest",
    "TranslateResponse",
]
