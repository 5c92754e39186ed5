"""Splits texts into index terms by Lucene, as they are indexed."""

from functools import cache
from threading import RLock
from typing import Any

from citerec.java import java_class

_calls = RLock()  # pyjnius stores the object of a call in the method, which all threads share


def analyze_by_lucene(text: str) -> list[str]:
    """Return the index terms of a text, in their order."""
    utils = java_class("io.anserini.analysis.AnalyzerUtils")
    with _calls:
        # one text: a call for each term would take longer; no term has a space
        listed = utils.analyze(analyzer(), text).toString()[1:-1]
    return listed.split(", ") if listed else []


@cache
def analyzer() -> Any:
    """Return Anserini's English analysis."""
    return java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
