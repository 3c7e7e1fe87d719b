"""The part of an imported bundle's card that says where the model comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

from linnet_model.importers.golden import Golden, GoldenChoice

NOT_STATED = "not stated at the import; read it where the model comes from before you use it"


@dataclass(frozen=True)
class CardFlags:
    """The caller's knowledge of a model: the licence of its weights, where they come from, and the
    golden examples that are wanted."""

    license: str = ""
    source: str = ""
    golden: GoldenChoice = field(default_factory=GoldenChoice)

    def card(self, found: str, golden: Golden) -> list[str]:
        """Returns lines of a list. `found` names the files where no source is given."""
        return [
            f"- source: {self.source or found}",
            f"- licence: {self.license or NOT_STATED}",
            f"- golden examples: {golden.card()}",
        ]


NO_CARD_FLAGS = CardFlags()
