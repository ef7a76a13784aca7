"""Tries a reward before anything is trained on it: does it pay right answers, and nothing but right answers?

It is asked about a few of the recipe's own training problems, about texts that anybody can write without solving them
(`rewards/probes.py`). What counts as *paid* is measured by the reward itself, so that small parts for form or length
are not taken for the answer: at each problem, of the writings in which a right answer earns more than a wrong one, the
one that earns most is the scale, and a text is paid when it earns more than half the way from that wrong answer to that
right one. Where a right answer earns nowhere more than a wrong one, a text is paid when it earns more than 0.

A reward that refuses the gold, or pays for no answer, is named when one problem shows it. The other kinds have to show
at more than half of the problems: a prompt may happen to end in its answer, and two golds may be one in two writings.
Without gold answers there is no scale, and the only question is whether the same text earns the same twice.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean

from earned.errors import RecipeError
from earned.recipe import Recipe, RewardFinding
from earned.rewards.checks import CONTROLS
from earned.rewards.compose import deciding_checks
from earned.rewards.gold import can_judge
from earned.rewards.probes import Probe, ProbeKind, probes_of
from earned.rewards.user_reward import RewardFunction
from earned.sandbox.workers import WorkerPool
from earned.task import WORKERS, Task, task_of
from earned.vocabulary import Attempt, Problem, Score

PROBLEMS = 8
TOLERANCE = 1e-6
"""Relative; networks give slightly other numbers in another batch."""
SHOWN_CHARACTERS = 80

FOUND_BY: Mapping[ProbeKind, RewardFinding] = {
    ProbeKind.RIGHT: "refuses_gold",
    ProbeKind.NOTHING: "pays_null_answer",
    ProbeKind.WRONG: "pays_wrong_answer",
    ProbeKind.CONSTANT: "pays_wrong_answer",
    ProbeKind.PASSING: "pays_wrong_answer",
    ProbeKind.LISTED: "pays_listed_answers",
    ProbeKind.ECHO: "pays_echoed_prompt",
}
ONE_IS_ENOUGH = (ProbeKind.RIGHT, ProbeKind.NOTHING)
"""Kinds for which a single problem shows a fault."""
ADVICE: Mapping[RewardFinding, str] = {
    "refuses_gold": "All usual writings were tried: read the answer where the model will write it; check the golds.",
    "pays_null_answer": "Pay nothing where no answer can be read.",
    "pays_wrong_answer": "Compare the answer that the text ends with; that the gold occurs in it, or its form, is no "
    "sign of a right answer.",
    "pays_listed_answers": "Hold a completion to one answer.",
    "pays_echoed_prompt": "Read no answer from what the prompt says already.",
    "not_deterministic": "Let the same text always earn the same: no chance, no clock, nothing kept from call to call, "
    "nothing that depends on the other completions.",
    "judges_nothing": "Mend the check, or give it golds that it can read.",
}
"""What to do about a finding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """A text with what it earned."""

    probe: Probe
    first: Score
    again: Score
    """The same text once more, in another order and another batch."""

    @property
    def steady(self) -> bool:
        """Whether it earned the same twice."""
        first, again = self.first.value, self.again.value
        if first is None or again is None:
            return first is again
        return math.isclose(first, again, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Something wrong with a reward, and the text that shows it."""

    name: RewardFinding
    sentence: str
    tried: Tried
    allowed: bool
    """True when `rewards.allow` of the recipe names it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KindResult:
    """How the texts of one kind fared."""

    kind: ProbeKind
    texts: int
    paid: int
    unscored: int
    finding: RewardFinding | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardReport:
    """What the texts showed."""

    problems: int
    """At how many of them the texts were tried; 0 for a control, which is meant to teach nothing."""
    kinds: tuple[KindResult, ...]
    """None where the problems have no gold answers, so that nothing says what is paid, and where nothing is scored."""
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> tuple[Finding, ...]:
        """The findings that the recipe does not allow by name."""
        return tuple(finding for finding in self.findings if not finding.allowed)


def check_reward(recipe: Recipe, *, reward: RewardFunction | None = None) -> RewardReport:
    """Try the reward of a recipe; no model is loaded. `reward` is a function handed over in Python.

    Raises:
        RecipeError: something about the problems or the reward cannot work.
        VerifierError: `reward` took too long.
    """
    with WorkerPool(WORKERS) as pool:
        return probe(task_of(recipe, pool, reward))


def require_sound_reward(task: Task) -> None:
    """Return if the reward shows no fault that the recipe does not allow.

    Raises:
        RecipeError: otherwise, naming each with the text that shows it.
        VerifierError: a function handed over in Python took too long.
    """
    refused = probe(task).refused
    if refused:
        names = ", ".join(f'"{finding.name}"' for finding in refused)
        sentences = "\n".join(finding.sentence for finding in refused)
        raise RecipeError(
            f"rewards: the reward cannot be trusted, so nothing was trained.\n{sentences}\nIf it is meant: "
            f"rewards.allow = [{names}]. All that was tried: earned check-reward RECIPE"
        )


def probe(task: Task) -> RewardReport:
    """Try the reward of a task on texts at a few of its training problems."""
    rewards = task.recipe.rewards
    if deciding_checks(rewards.parts) <= set(CONTROLS):
        return RewardReport(problems=0, kinds=(), findings=())
    problems = _chosen(task)
    tried = _tried(task, problems)
    if all(one.first.value is None for one in tried):
        silence = _finding(task, "judges_nothing", tried[0], "is not scored, like every other text that was tried")
        return RewardReport(problems=len(problems), kinds=(), findings=(silence,))
    scales = {problem.id: _Scale.of([one for one in tried if one.probe.problem is problem]) for problem in problems}
    shown = {kind: _telling(kind, [one for one in tried if one.probe.kind is kind], scales) for kind in ProbeKind}
    findings = [_paid_finding(task, one, scales) for one in shown.values() if one is not None]
    findings += [_unsteady_finding(task, one) for one in tried if not one.steady]
    return RewardReport(
        problems=len(problems),
        kinds=tuple(_results(tried, scales, shown)) if problems[0].gold is not None else (),
        findings=tuple({finding.name: finding for finding in reversed(findings)}.values())[::-1],
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """What is paid at one problem: rewards of a right and a wrong answer in one writing, None where there are none."""

    right: float | None
    wrong: float | None

    @classmethod
    def of(cls, tried: Sequence[Tried]) -> "_Scale":
        right, wrong = (
            {one.probe.writing: one.first.value for one in tried if one.probe.kind is kind}
            for kind in (ProbeKind.RIGHT, ProbeKind.WRONG)
        )
        pairs = [(value, wrong[writing]) for writing, value in right.items() if value is not None]
        told_apart = [(value, other) for value, other in pairs if other is not None and value > other]
        return cls(*max(told_apart or [pair for pair in pairs if pair[1] is not None], default=(None, None)))

    def paid(self, one: Tried) -> bool:
        if one.first.value is None or self.right is None or self.wrong is None:
            return False
        bar = fmean((self.right, self.wrong)) if self.right > self.wrong else 0.0
        return one.first.value > bar


def _chosen(task: Task) -> list[Problem]:
    """Return a few training problems with different golds that every part can judge; else the first few."""
    checks = [part.check for part in task.recipe.rewards.parts.values()]
    by_gold: dict[str, Problem] = {}
    for problem in task.problems.train:
        if problem.gold is not None and all(can_judge(check, [problem]) for check in checks):
            by_gold.setdefault(problem.gold, problem)
        if len(by_gold) == PROBLEMS:
            break
    return list(by_gold.values()) or list(task.problems.train[:PROBLEMS])


def _tried(task: Task, problems: Sequence[Problem]) -> list[Tried]:
    """Judge every text twice: all at once, and backwards in two batches of unlike size."""
    golds = [problem.gold for problem in problems if problem.gold is not None]
    probes = [
        one for place, problem in enumerate(problems) for one in probes_of(problem, golds[place:] + golds[:place])
    ]
    attempts = {
        name: Attempt(problem=one.problem, text=one.text, seed=task.recipe.seed, step=0, rollout_id=name)
        for name, one in ((f"probe/{number}", one) for number, one in enumerate(probes))
    }
    first = task.rewarder.score_all(attempts)
    backwards, again = iter(reversed(attempts.items())), {}
    for size in (len(attempts) // 3, len(attempts)):
        again |= task.rewarder.score_all(dict(islice(backwards, size)))
    return [Tried(probe=one, first=first[name], again=again[name]) for name, one in zip(attempts, probes, strict=True)]


def _telling(kind: ProbeKind, tried: Sequence[Tried], scales: Mapping[str, _Scale]) -> Tried | None:
    """Return a text that shows the fault of its kind, None where enough problems show that there is none."""
    by_problem: dict[str, list[Tried]] = {}
    for one in tried:
        by_problem.setdefault(one.probe.problem.id, []).append(one)
    faulty: list[Tried] = []
    for name, texts in by_problem.items():
        paid = [one for one in texts if scales[name].paid(one)]
        if kind is ProbeKind.RIGHT and not paid:
            faulty.append(texts[0])
        elif kind is not ProbeKind.RIGHT and paid:
            faulty.append(paid[0])
    enough = len(faulty) >= 1 if kind in ONE_IS_ENOUGH else len(faulty) > len(by_problem) / 2
    return faulty[0] if enough else None


def _results(
    tried: Sequence[Tried], scales: Mapping[str, _Scale], shown: Mapping[ProbeKind, Tried | None]
) -> Iterator[KindResult]:
    for kind in ProbeKind:
        texts = [one for one in tried if one.probe.kind is kind]
        if texts:
            yield KindResult(
                kind=kind,
                texts=len(texts),
                paid=sum(scales[one.probe.problem.id].paid(one) for one in texts),
                unscored=sum(one.first.value is None for one in texts),
                finding=None if shown[kind] is None else FOUND_BY[kind],
            )


def _paid_finding(task: Task, one: Tried, scales: Mapping[str, _Scale]) -> Finding:
    scale = scales[one.probe.problem.id]
    compared = (
        f"where a right answer earns {_number(scale.right)} and a wrong one {_number(scale.wrong)}"
        if scale.right is not None
        else "and no right answer is scored"
    )
    return _finding(task, FOUND_BY[one.probe.kind], one, f"earns {_number(one.first.value)}, {compared}")


def _unsteady_finding(task: Task, one: Tried) -> Finding:
    return _finding(
        task,
        "not_deterministic",
        one,
        f"earns {_number(one.first.value)}, and in another order and another batch {_number(one.again.value)}",
    )


def _finding(task: Task, name: RewardFinding, one: Tried, what: str) -> Finding:
    problem = one.probe.problem
    sentence = (
        f"{name}: {one.probe.kind}, {_cut(one.probe.text)}, {what} (problem {_cut(problem.prompt)}, gold "
        f"{_cut(problem.gold or '')}; {one.first.explanation[: 2 * SHOWN_CHARACTERS]}). {ADVICE[name]}"
    )
    return Finding(name=name, sentence=sentence, tried=one, allowed=name in task.recipe.rewards.allow)


def _number(value: float | None) -> str:
    return "nothing that could be scored" if value is None else f"{value:g}"


def _cut(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:SHOWN_CHARACTERS]}... ({len(text)} characters)"
