"""`length`: a penalty for completions that are too long, or too short."""

from pydantic import ValidationInfo, field_validator

from earned.recipe_file import Positive
from earned.rewards.verdict import BuiltInCheck, Verdict
from earned.vocabulary import Attempt

BUFFER_SHARE = 5
"""The buffer is one part in five of `max_tokens`, as in DAPO: 4,096 of 20,480."""


class LengthCheck(BuiltInCheck):
    """0 for a length within bounds, down to -1 beyond; in tokens, the end-of-sequence included.

    With L tokens: 0 up to max_tokens - buffer, (max_tokens - buffer - L) / buffer up to max_tokens, -1 above. Below
    `min_tokens` it is (L - min_tokens) / min_tokens. A truncated completion gets -1, whatever its length. To a text
    that no model wrote, which has no tokens, the check does not apply.
    """

    max_tokens: Positive
    """From this length on the whole penalty is paid; to be felt it lies at or below `sampling.max_new_tokens`."""
    buffer: Positive | None = None
    """The penalty grows over so many tokens before `max_tokens`; where not given, over the last fifth of it."""
    min_tokens: Positive | None = None
    """Shorter completions pay too; None for no such bound."""

    @field_validator("buffer")
    @classmethod
    def _fits(cls, buffer: int | None, info: ValidationInfo) -> int | None:
        if buffer is not None and buffer > info.data.get("max_tokens", buffer):
            raise ValueError("the buffer is the end of max_tokens, so it cannot be longer")
        return buffer

    @field_validator("min_tokens")
    @classmethod
    def _leaves_room(cls, least: int | None, info: ValidationInfo) -> int | None:
        if least is not None and {"max_tokens", "buffer"} <= info.data.keys():
            free = _free(info.data["max_tokens"], info.data["buffer"])
            if least > free:
                raise ValueError(f"no length would be free: above {free} (max_tokens - buffer) it is too long already")
        return least

    def __call__(self, attempt: Attempt) -> Verdict:
        """Judge one attempt by its number of tokens."""
        length = attempt.tokens
        if attempt.truncated:
            return _penalty(-1.0, "cut off by the length limit")
        if length is None:
            return Verdict(value=None, extracted=None, explanation="a text without tokens", applies=False)
        free = _free(self.max_tokens, self.buffer)
        if length > free:
            return _penalty(
                (free - length) / (self.max_tokens - free), f"{length} tokens, {length - free} above {free}"
            )
        if self.min_tokens is not None and length < self.min_tokens:
            short = f"{length} tokens, {self.min_tokens - length} below {self.min_tokens}"
            return _penalty((length - self.min_tokens) / self.min_tokens, short)
        return Verdict(value=0.0, extracted=None, explanation=f"{length} tokens, within bounds")


def _free(max_tokens: int, buffer: int | None) -> int:
    """Return the longest length that costs nothing."""
    return max_tokens - (buffer or max(1, max_tokens // BUFFER_SHARE))


def _penalty(value: float, explanation: str) -> Verdict:
    return Verdict(value=max(-1.0, value), extracted=None, explanation=explanation)
