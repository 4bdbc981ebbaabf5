"""Cron expressions, in UTC."""

from datetime import UTC, datetime

from wellkept import validation
from wellkept.errors import InvalidInput


def check(expression: object) -> None:
    """Refuse what is not a cron expression, or one that never comes."""
    after(validation.line("schedule", expression), datetime(2024, 1, 1, tzinfo=UTC))


def after(expression: str, moment: datetime) -> datetime:
    """The first time of a cron expression behind a moment.

    >>> after("30 3 * * 1", datetime(2026, 1, 7, tzinfo=UTC)).isoformat()
    '2026-01-12T03:30:00+00:00'
    """
    from cronsim import CronSim, CronSimError  # lazy: most databases have no schedule

    try:
        return next(CronSim(expression, moment.astimezone(UTC)))
    except (CronSimError, StopIteration):
        raise InvalidInput(
            f"schedule is not a cron expression: {expression[:64]!r}",
            details={"field": "schedule"},
            hint="use five fields, such as '0 3 * * *' for every day at 03:00 UTC",
        ) from None
