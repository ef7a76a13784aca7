"""What a run will cost in tokens, time and memory, worked out before its first step.

How far off it was, on one CPU with the built-in model and with one of 27 M, steps 2 to 40, micro-batches of
1k to 32k tokens: time -14 % to +20 % of the processor seconds really used (for the demo -6 %, although its completions
grew threefold), memory -16 % to +25 % of the peak of the process. The clock on the wall adds whatever else the machine
does. Not counted: saving, records, the optimiser's own arithmetic.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

NUMBER = 4
"""Bytes of a float32: weights, gradients, the two moments of the optimiser, and activations are counted as such."""
PROGRAM = 0.4e9
"""Bytes of the program itself with its libraries."""
SAMPLED_LOGIT = 24
"""Bytes a word of the vocabulary takes for every row when a token is drawn: its log-probability, and float64 sums."""
HIDDEN_COPIES, INTERMEDIATE_COPIES = 18, 5
"""Activations a layer keeps of a token for the backward pass, in units of the two widths of a layer."""
LOGIT_COPIES = 4
CORRECTED_STEP = 5
OFF = 2.0
WORTH_SAYING = 10.0
"""Seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSize:
    """The numbers of a model that memory depends on."""

    parameters: int
    layers: int
    hidden: int
    intermediate: int
    key_value: int
    """Width of the keys of a token in one layer; its values are as wide."""
    vocabulary: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What a recipe asks for."""

    steps: int
    attempts: int
    """Completions of a step."""
    group: int
    """Completions of a prompt, which read it once."""
    max_new_tokens: int
    evaluations: int
    """How often the frozen problems are sampled."""
    evaluated: int
    """Completions of one evaluation, the greedy ones included."""
    reads: int
    """Times an update's forward pass is paid: 3 for forward and backward, and one for each further pass."""
    rows: int
    """Most sequences that are sampled together."""
    longest: int
    """Tokens of the longest prompt with the longest completion."""
    micro_batch: int
    """Most tokens in one forward and backward pass."""
    chunk: int
    """Most logits held at once in it."""
    reference: bool
    """Whether a second copy of the weights is kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What the pre-flight saw; the seconds are those of all its attempts together."""

    attempts: int
    tokens: int
    """Sampled, end-of-sequence included."""
    sample_seconds: float
    score_seconds: float
    read_seconds: float
    """One forward pass over the prompts and completions, laid out as an update lays them out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes at the peak; sampling and the update take turns."""

    weights: float
    """With gradients, optimiser states and, where there is one, the reference."""
    sampling: float
    update: float

    @property
    def peak(self) -> float:
        """Bytes of everything together."""
        return PROGRAM + self.weights + max(self.sampling, self.update)

    @property
    def remedy(self) -> str:
        """What to change where the peak is too high: the key of its largest part."""
        if self.weights > max(self.sampling, self.update):
            return "choose a smaller model (model)"
        return f"lower {'sampling.batch_size' if self.sampling > self.update else 'optim.tokens_per_micro_batch'}"


def memory(work: Work, size: ModelSize) -> Memory:
    """Return the peak memory of a run in bytes.

    Counted: weights, gradients and two moments in float32; keys, values and the distribution of every row that is
    sampled; activations of a micro-batch and a chunk of its logits.
    """
    copies = 5 if work.reference else 4
    cached = work.longest * size.layers * 2 * size.key_value * NUMBER
    rows = min(work.attempts, max(1, work.micro_batch // work.longest))
    prompts = math.ceil(rows / work.group)
    tokens = rows * work.max_new_tokens + prompts * (work.longest - work.max_new_tokens)
    activations = size.layers * (HIDDEN_COPIES * size.hidden + INTERMEDIATE_COPIES * size.intermediate)
    logits = min(tokens * size.vocabulary, work.chunk)
    return Memory(
        weights=copies * NUMBER * size.parameters,
        sampling=work.rows * (cached + SAMPLED_LOGIT * size.vocabulary),
        update=NUMBER * (tokens * activations + LOGIT_COPIES * logits),
    )


def seconds(work: Work, measured: Trial) -> float:
    """Return the time of a run, were its completions to stay as long as those of the pre-flight, and all trained on."""
    attempt = (measured.sample_seconds + measured.score_seconds) / measured.attempts
    update = work.reads * measured.read_seconds / measured.attempts
    return work.steps * work.attempts * (attempt + update) + work.evaluations * work.evaluated * attempt


def evaluations_after(step: int, every: int, last: int) -> int:
    """Return how many evaluations a run still has before it after a step: at every so many steps and at the last.

    >>> evaluations_after(0, 20, 40), evaluations_after(20, 20, 50), evaluations_after(50, 20, 50)
    (2, 2, 0)
    """
    return last // every - step // every + (step < last and last % every > 0)


def correction_due(step: int, said: float | None, elapsed: float, left: float) -> bool:
    """Return whether to say the time anew: once early on, and when what was said is off more than twofold.

    The first step is slower than the others and says nothing, and a few seconds are not worth a sentence.

    >>> [correction_due(step, 60.0, 10.0, left) for step, left in ((1, 190.0), (4, 90.0), (5, 51.0), (9, 111.0))]
    [False, False, True, True]
    >>> correction_due(5, said=60.0, elapsed=10.0, left=9.0)
    False
    """
    off = said is not None and not said / OFF <= elapsed + left <= said * OFF
    return left >= WORTH_SAYING and (step == CORRECTED_STEP or (step > 1 and off))


def remaining_seconds(steps: Collection[float], steps_left: int, evaluation: float, evaluations_left: int) -> float:
    """Return the time still to come from the seconds of the last steps, without evaluations, and of the last of these.

    >>> remaining_seconds([1.0, 3.0], steps_left=10, evaluation=5.0, evaluations_left=2)
    30.0
    """
    return sum(steps) / len(steps) * steps_left + evaluation * evaluations_left


def sentence(work: Work, measured: Trial | None, peak: float) -> str:
    """Return the estimate in one line; without a pre-flight no time is known, and the tokens are an upper bound."""
    done = f"{work.steps} step{'' if work.steps == 1 else 's'} of {work.attempts} completions"
    if measured is None:
        tokens = work.steps * work.attempts * work.max_new_tokens
        return f"{done}: at most {counted(tokens)} tokens, about {gigabytes(peak)}; no pre-flight, so no time is known"
    length = measured.tokens / measured.attempts
    return (
        f"{done}: about {counted(work.steps * work.attempts * length)} tokens at the present length of {length:.1f}, "
        f"about {duration(seconds(work, measured))}, about {gigabytes(peak)}"
    )


def counted(tokens: float) -> str:
    """Return a number of tokens.

    >>> counted(1234.5), counted(485_000), counted(12_345_678)
    ('1,234', '0.5 M', '12.3 M')
    """
    return f"{tokens / 1e6:.1f} M" if tokens >= 1e5 else f"{tokens:,.0f}"


def gigabytes(size: float) -> str:
    """Return a number of bytes: `gigabytes(8.5e8)` is '0.9 GB'."""
    return f"{size / 1e9:.1f} GB"


def duration(seconds: float) -> str:
    """Return a time.

    >>> duration(9.6), duration(114), duration(7200)
    ('10 s', '1.9 min', '2.0 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
