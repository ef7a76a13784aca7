"""What is a matter of opinion when two answers are compared; every field has its default for a reason."""

from typing import Literal

from earned.recipe_file import NonNegative, Section


class Policy(Section):
    """The options of the check `math` that decide what counts as equal."""

    tolerance: NonNegative = 0.0
    """Relative difference that two numbers may have. 0: 0.333 is not 1/3, since near is not equal."""
    missing_units: bool = True
    """An answer without a unit is right where the gold has one. Another unit is wrong in any case."""
    percent_as_number: bool = True
    """36 % is right for 36 and the other way round; 0.36 is always right for 36 %."""
    scaled_ratios: bool = True
    """6:8 is right for 3:4."""
    decimal_comma: bool = False
    """3,14 means 3.14. Off: it lists 3 and 14."""
    intervals_as_inequalities: bool = True
    """1 < x < 2 is right for (1, 2); the other way round it always is."""
    unevaluated: bool = True
    """A number may be left as an expression: log_2 8 is right for 3."""
    domain: Literal["real", "complex"] = "real"
    """Letters stand for real numbers, and only where both sides are real do they have to agree; or for complex ones."""
