"""Sizes and options of a model: the table [model] of a recipe."""

from __future__ import annotations

from dataclasses import dataclass, field

CONVOLUTIONS = ("dynamic", "light", "depthwise", "dilated", "full")
ATTENTIONS = ("self_attention", "csan_1d", "csan_2d")
RECURRENT = ("ssru",)  # of a decoder only
MIXERS = CONVOLUTIONS + ATTENTIONS + RECURRENT
SHARING = ("all", "output", "none")
POSITIONS = ("sinusoidal", "sinusoidal_marian", "learned", "none")
ACTIVATIONS = ("relu", "swish", "gelu")
# Far above every trained model, so that a damaged number is refused before it is an allocation:
# M2M-100 has up to 24 layers per side, width 4096 and ffn_width 16384.
MAX_LAYERS, MAX_WIDTH, MAX_FFN_WIDTH = 256, 1 << 14, 1 << 16
MAX_VOCABULARY, MAX_TOKENS = 1 << 24, 1 << 20  # the server's limits of a manifest


class ConfigError(ValueError):
    """A setting or an input file is invalid; the message names the key, the value and the limit."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def require_between(name: str, value: int, minimum: int, maximum: int) -> None:
    require(
        minimum <= value <= maximum,
        f"{name} is {value}, must be between {minimum} and {maximum}",
    )


@dataclass
class ModelConfig:
    """An encoder-decoder whose layers hold a mixer each (Wu et al. 2019 and their relatives), or,
    without encoder layers, a language model. Sizes are fixed at the start of a training."""

    vocabulary: int = 6000  # rows of the embedding, target side too if sharing is "all"
    target_vocabulary: int = 0  # 0: the same as vocabulary
    width: int = 256  # d, the channels between layers and inside the mixers
    ffn_width: int = 768  # hidden channels of the feed-forward blocks
    heads: int = 4  # H, heads of the convolutions and of every attention
    # Width of each layer. Of a convolution: its taps K, odd. Of an attention: its window of
    # positions, odd and centred in the encoder, the last positions in the decoder; 0 (only for
    # self_attention and ssru) is the whole sequence. A model without encoder layers is a language
    # model.
    encoder_kernels: list[int] = field(default_factory=lambda: [3, 7, 15, 31])
    decoder_kernels: list[int] = field(default_factory=lambda: [3, 7, 15])
    # Per layer; one name: all layers. Known are dynamic, light, depthwise, dilated, full,
    # self_attention, csan_1d, csan_2d, and for the decoder ssru, whose width is 0.
    encoder_mixers: list[str] = field(default_factory=lambda: ["dynamic"])
    decoder_mixers: list[str] = field(default_factory=lambda: ["dynamic"])
    # Positions from tap to tap, per layer; one number: all layers. Above 1 only for "dilated".
    encoder_dilations: list[int] = field(default_factory=lambda: [1])
    decoder_dilations: list[int] = field(default_factory=lambda: [1])
    neighbour_heads: int = 3  # csan_2d: heads that a head attends to, itself included, odd
    glu: bool = True  # linear d -> 2d and a gate before each convolution
    weight_softmax: bool = True  # dynamic and light: softmax over the taps
    # Norm at the start of each block and after the last one; false: after each residual sum.
    pre_norm: bool = True
    norm_epsilon: float = 1e-5  # added to the variance in every norm; Marian's is 1e-6
    # "all": one embedding for source, target, output; "output": target and output; "none"
    sharing: str = "all"
    # "sinusoidal": frequencies 10000^(-i / (d/2 - 1)), fairseq's; "sinusoidal_marian":
    # 10000^(-2i / d), Marian's; "learned": a table per side; "none"
    positions: str = "sinusoidal"
    first_position: int = 2  # position of a sequence's first token; fairseq 2, Marian 0
    # Rows of a learned table, and the longest target of a decoder that attends to all of it.
    max_positions: int = 1024
    activation: str = "relu"  # of the feed-forward blocks; or "swish", "gelu"
    scale_embedding: bool = True  # embeddings times sqrt(d)
    embedding_norm: bool = False  # a norm on the sum of embedding and position
    output_bias: bool = False  # a learned number added to each logit
    # The decoder layer (from 0), and the head of it, whose attention is the alignment. -1: the last
    # layer but one; the mean of its heads. A model that learned alignments has them in one head.
    alignment_layer: int = -1
    alignment_head: int = -1
    dropout: float = 0.1  # on embeddings and on the output of each block
    input_dropout: float = 0.0  # on the input of each convolution block
    relu_dropout: float = 0.0  # on the hidden channels of the feed-forward blocks
    attention_dropout: float = 0.0  # on the weights of every attention
    weight_dropout: float = 0.1  # DropConnect on the taps of the convolutions

    def check(self) -> None:
        """Refuses sizes that cannot be built; repeats values given once for every layer."""
        if self.target_vocabulary == 0:
            self.target_vocabulary = self.vocabulary
        require(
            len(self.decoder_kernels) > 0,
            "model.decoder_kernels is empty, name one kernel width per layer",
        )
        for side in ("encoder", "decoder"):
            layers = len(getattr(self, f"{side}_kernels"))
            require(
                layers <= MAX_LAYERS,
                f"model.{side}_kernels names {layers} layers, must be at most {MAX_LAYERS}",
            )
            self.per_layer(side, "mixers")
            self.per_layer(side, "dilations")
            for mixer, kernel, dilation in zip(
                getattr(self, f"{side}_mixers"),
                getattr(self, f"{side}_kernels"),
                getattr(self, f"{side}_dilations"),
                strict=True,
            ):
                check_layer(side, mixer, kernel, dilation)
        self.check_sizes()
        for name, known in (
            ("sharing", SHARING),
            ("positions", POSITIONS),
            ("activation", ACTIVATIONS),
        ):
            value = getattr(self, name)
            require(value in known, f"model.{name} is {value!r}, known are {', '.join(known)}")
        require(
            self.sharing != "all" or self.target_vocabulary == self.vocabulary,
            f"model.sharing is 'all' with vocabularies of {self.vocabulary} and "
            f"{self.target_vocabulary}",
        )
        require(
            0.0 < self.norm_epsilon <= 1.0,
            f"model.norm_epsilon is {self.norm_epsilon}, must be above 0 and at most 1",
        )
        for name in vars(self):
            if name.endswith("dropout"):
                value = getattr(self, name)
                require(0.0 <= value < 1.0, f"model.{name} is {value}, must be in [0, 1)")

    def per_layer(self, side: str, what: str) -> None:
        """Repeats a list of one for every layer of the side."""
        layers, values = len(getattr(self, f"{side}_kernels")), getattr(self, f"{side}_{what}")
        if len(values) == 1:
            values = values * layers
            setattr(self, f"{side}_{what}", values)
        require(
            len(values) == layers,
            f"model.{side}_{what} names {len(values)} layers and {side}_kernels {layers}, give one "
            "or as many",
        )

    def check_sizes(self) -> None:
        for name, minimum, maximum in (
            ("width", 4, MAX_WIDTH),
            ("ffn_width", 1, MAX_FFN_WIDTH),
            ("heads", 1, MAX_WIDTH),
            ("vocabulary", 5, MAX_VOCABULARY),  # ids 0 to 3 are special
            ("target_vocabulary", 5, MAX_VOCABULARY),
        ):
            require_between(f"model.{name}", getattr(self, name), minimum, maximum)
        require(
            self.width % self.heads == 0,
            f"model.width {self.width} is no multiple of heads {self.heads}",
        )
        require(self.width % 2 == 0, f"model.width {self.width} must be even")
        require(
            self.neighbour_heads > 0 and self.neighbour_heads % 2 == 1,
            f"model.neighbour_heads is {self.neighbour_heads}, must be odd and positive: a head "
            "and as many on either side",
        )
        require_between(
            "model.alignment_layer", self.alignment_layer, -1, len(self.decoder_kernels) - 1
        )
        require_between("model.alignment_head", self.alignment_head, -1, self.heads - 1)
        require(
            self.first_position >= 0,
            f"model.first_position is {self.first_position}, must be at least 0",
        )
        require(
            self.max_positions >= 2,
            f"model.max_positions is {self.max_positions}, must be at least 2",
        )

    def attends_to_whole_target(self) -> bool:
        """True if a decoder slot holds keys and values of max_positions positions."""
        return any(
            mixer == "self_attention" and kernel == 0
            for mixer, kernel in zip(self.decoder_mixers, self.decoder_kernels, strict=True)
        )

    def check_lengths(self, source_tokens: int, target_tokens: int) -> None:
        """Refuses limits beyond the model's positions or its decoder state.

        source_tokens: the longest source, with its end token; target_tokens: the longest target,
        without it.
        """
        learned = self.positions == "learned"
        require(
            not learned or not self.encoder_kernels or source_tokens <= self.max_positions,
            f"sources of {source_tokens} tokens do not fit model.max_positions "
            f"{self.max_positions}, raise it or lower max_source_tokens",
        )
        require(
            not (learned or self.attends_to_whole_target()) or target_tokens < self.max_positions,
            f"targets of {target_tokens} tokens and an end token do not fit model.max_positions "
            f"{self.max_positions}, raise it or lower max_target_tokens",
        )


def check_layer(side: str, mixer: str, kernel: int, dilation: int) -> None:
    """Refuses a mixer with a width or dilation that it does not have."""
    require(mixer in MIXERS, f"model.{side}_mixers has {mixer!r}, known are {', '.join(MIXERS)}")
    key = f"model.{side}_kernels has {kernel}"
    if mixer in CONVOLUTIONS:
        require(kernel > 0 and kernel % 2 == 1, f"{key}, kernel widths are odd and positive")
    elif mixer in RECURRENT:
        require(
            side == "decoder",
            f"model.encoder_mixers has {mixer!r}, which reads only the past: give it to the "
            "decoder",
        )
        require(kernel == 0, f"{key} with {mixer}, which always sees the whole past: use 0")
    else:
        require(kernel >= 0, f"{key}, a window has at least one position")
        require(
            kernel > 0 or mixer == "self_attention",
            f"{key} with {mixer}, which needs a window, only self_attention sees all with 0",
        )
        require(
            side == "decoder" or kernel == 0 or kernel % 2 == 1,
            f"{key}, windows of the encoder are centred: odd",
        )
    require(dilation > 0, f"model.{side}_dilations has {dilation}, dilations are at least 1")
    require(
        dilation == 1 or mixer == "dilated",
        f"model.{side}_dilations has {dilation} with {mixer}, only dilated has dilations above 1",
    )
