"""`format`: the completion has the form that was asked for, whatever it says."""

import re
from itertools import zip_longest
from typing import Annotated

import regex
from pydantic import Field, ValidationInfo, field_validator

from earned.rewards.verdict import BuiltInCheck, Verdict
from earned.vocabulary import Attempt, Rule

MATCH_SECONDS = 0.2
"""Processor time of one match: patterns such as (a|aa)+ can need longer than the world has existed."""

TagName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]


class FormatCheck(BuiltInCheck):
    """1 when the completion has the form, else 0: `tags` or `pattern` says which. A truncated completion gets 0."""

    tags: tuple[TagName, ...] = ()
    """Elements such as `<think>...</think>`: each exactly once, in this order, one after the other, with a letter or a
    digit inside and nothing but white space outside. The case of the letters does not count."""
    prefilled: bool = False
    """True where the chat template has written the first opening tag already, so that the completion begins inside."""
    pattern: str | None = Field(default=None, validate_default=True)
    """A regular expression, as in Python's `re`, that has to match the whole text; `(?s)` lets `.` match newlines."""

    @field_validator("tags")
    @classmethod
    def _distinct(cls, tags: tuple[str, ...]) -> tuple[str, ...]:
        if len({tag.casefold() for tag in tags}) < len(tags):
            raise ValueError("every tag stands exactly once in a completion, so once here")
        return tags

    @field_validator("prefilled")
    @classmethod
    def _has_tags(cls, prefilled: bool, info: ValidationInfo) -> bool:
        if prefilled and info.data.get("tags") == ():
            raise ValueError("there is no first tag; give tags too")
        return prefilled

    @field_validator("pattern")
    @classmethod
    def _usable(cls, pattern: str | None, info: ValidationInfo) -> str | None:
        if "tags" in info.data and (pattern is None) == (not info.data["tags"]):
            raise ValueError('give either tags, for example tags = ["think", "answer"], or a pattern')
        try:
            regex.compile(pattern or "")
        except regex.error as error:
            raise ValueError(f"is no regular expression: {error}") from None
        return pattern

    def __call__(self, attempt: Attempt) -> Verdict:
        """Judge one attempt by its text."""
        if attempt.truncated:
            return _verdict("cut off by the length limit")
        if self.pattern is not None:
            return _matches(self.pattern, attempt.text)
        opened = f"<{self.tags[0]}>" if self.prefilled else ""
        return _verdict(fault_of_tags(opened + attempt.text, self.tags))


def fault_of_tags(text: str, tags: tuple[str, ...]) -> str | None:
    """Return what is wrong with the tags of a text, None when nothing is; linear in the text.

    >>> fault_of_tags("<think>3+4=7</think> <answer>7</answer>", ("think", "answer"))
    >>> fault_of_tags("<think></think>7", ("think",))
    'nothing is written inside <think>'
    """
    mark = re.compile(rf"</?(?:{'|'.join(tags)})>", re.IGNORECASE)
    marks, wanted = [found.casefold() for found in mark.findall(text)], _marks(tags)
    if marks != wanted:
        return _first_difference(marks, wanted)
    stretches = mark.split(text)
    outside, inside = stretches[::2], stretches[1::2]
    for tag, content in zip(tags, inside, strict=True):
        if not any(character.isalnum() for character in content):
            return f"nothing is written inside <{tag}>"
    return "text stands outside the tags" if any(stretch.strip() for stretch in outside) else None


def _marks(tags: tuple[str, ...]) -> list[str]:
    return [mark.casefold() for tag in tags for mark in (f"<{tag}>", f"</{tag}>")]


def _first_difference(marks: list[str], wanted: list[str]) -> str:
    pairs = zip_longest(marks, wanted, fillvalue="the end")
    there, due = next((there, due) for there, due in pairs if there != due)
    return f"{due} should come where {there} is"


def _matches(pattern: str, text: str) -> Verdict:
    try:
        found = regex.compile(pattern).fullmatch(text, timeout=MATCH_SECONDS)
    except TimeoutError:
        slow = f"the pattern took longer than {MATCH_SECONDS:g} s on this text"
        return Verdict(value=0.0, extracted=None, explanation=slow, rule=Rule.TIMED_OUT)
    return _verdict(None if found else "the text does not match the pattern")


def _verdict(fault: str | None) -> Verdict:
    return Verdict(value=float(fault is None), extracted=None, explanation=fault or "as asked for")
