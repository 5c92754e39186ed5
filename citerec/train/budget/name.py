"""The names of the budgets; apart, so that the command line shows them without importing the trainers."""

from enum import StrEnum


class Budget(StrEnum):
    """The time and the machine of a training."""

    MINUTES = "minutes"  # the ranker, on a laptop
    HOUR = "hour"  # small models, on a CPU
    NIGHT = "night"  # the models of the papers, on a GPU
