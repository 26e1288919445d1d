"""The two ways an expression can fail: when it is read, and when it is evaluated.

`ExpressionError` belongs to whoever wrote the text. `EvaluationError` depends on the data of
the moment (two series with the same labels, say): one rule fails once, nothing else does.
"""


class ExpressionError(Exception):
    """The text is wrong, or asks for something Sentinel does not evaluate."""

    def __init__(self, message: str, *, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.column = column  # from 1; None if not known


class EvaluationError(Exception):
    """The expression has no answer over the present series."""
