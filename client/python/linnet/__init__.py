"""The Python client of Linnet.

    import linnet

    print(linnet.translate("A dog runs.", to="de"))

`Client` and `AsyncClient` keep a connection to a given server. They take strings like the functions
above, and requests of the API for all other options. Requests and responses are the messages of the
API (proto/linnet/v1/text_service.proto documents every field); errors are `LinnetError`.
"""

from .aio import AsyncClient
from .async_stream import AsyncStream
from .channel import call_metadata
from .client import Client
from .errors import LinnetError
from .options import Options, Retry, Tls
from .simple import summarize, translate
from .stream import Stream
from .texts import LinnetWarning
from .v1.bundle_pb2 import SummaryStyle
from .v1.text_service_pb2 import (
    DecodingOptions,
    DetectLanguageRequest,
    DetectLanguageResponse,
    GetModelRequest,
    GetModelResponse,
    Glossary,
    GlossaryEntry,
    LanguageDetection,
    ListModelsRequest,
    ListModelsResponse,
    LongInput,
    MarkupOptions,
    Priority,
    ScorePair,
    ScoreRequest,
    ScoreResponse,
    ScoringOptions,
    SummarizeRequest,
    SummarizeResponse,
    TargetScore,
    TextPart,
    TranslateRequest,
    TranslateResponse,
)
from .version import __version__

__all__ = [
    "AsyncClient",
    "AsyncStream",
    "Client",
    "DecodingOptions",
    "DetectLanguageRequest",
    "DetectLanguageResponse",
    "GetModelRequest",
    "GetModelResponse",
    "Glossary",
    "GlossaryEntry",
    "LanguageDetection",
    "LinnetError",
    "LinnetWarning",
    "ListModelsRequest",
    "ListModelsResponse",
    "LongInput",
    "MarkupOptions",
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
    "SummaryStyle",
    "TargetScore",
    "TextPart",
    "Tls",
    "TranslateRequest",
    "TranslateResponse",
    "__version__",
    "call_metadata",
    "summarize",
    "translate",
]
