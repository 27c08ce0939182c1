"""The one error type that means: the input is at fault, and here is the fix."""


class GaitError(Exception):
    """Bad input. The message is one sentence that says what is wrong and what to do about it."""


def need_extra(package: str, extra: str) -> GaitError:
    """The error for an optional dependency that is not installed."""
    return GaitError(f"{package} is not installed: run `pip install 'gait-estimator[{extra}]'`")
