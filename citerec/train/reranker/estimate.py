"""What a training logs about its length."""

from citerec.train.reranker.config import RerankerRecipe, RerankerTraining

DAY = 24 * 60 * 60  # seconds


def planned_updates(updates: int, config: RerankerTraining) -> str:
    """Return the log line of the planned updates."""
    pairs = config.batch * config.in_list
    return f"{updates:,} updates of {pairs:,} pairs: {updates * pairs:,} pairs"


def remaining_time(seconds: float, config: RerankerTraining, *, on_cpu: bool) -> str:
    """Return the log line of the remaining time, with faster recipes if it is very long on a CPU."""
    units = (("days", DAY), ("hours", 3600), ("minutes", 60), ("seconds", 1))
    name, unit = next(((n, u) for n, u in units if seconds >= 2 * u), units[-1])
    estimate = f"about {round(seconds / unit):,} {name} to go, without the evaluations"
    if not on_cpu or seconds <= DAY or config.recipe is not RerankerRecipe.PAPER:
        return estimate
    return f"{estimate}; on a CPU --recipe {RerankerRecipe.STRONG} or {RerankerRecipe.PAPER_SMALL} is faster"
