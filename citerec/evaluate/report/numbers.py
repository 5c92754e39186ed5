"""The format of numbers in reports, and the names of the metrics."""

from citerec.evaluate.report.model import NONE, Cell

HEADINGS = {
    "f1@20": "F1@20",
    "f1@20 (of means)": "F1 of means",
    "mrr": "MRR",
    "recall@100": "R@100",
    "recall@1000": "R@1000",
    "ndcg@20": "nDCG@20",
    "map": "MAP",
}


def heading(metric: str) -> str:
    """Return the name of a metric in a table."""
    return HEADINGS.get(metric, metric)


def decimal(value: float) -> str:
    """Format a value with three decimals and without a leading zero, as in IR papers."""
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def p_value(p: float) -> str:
    """Format a p value with three decimals."""
    return "< .001" if p < 0.001 else decimal(p)


def signed(value: float) -> str:
    """Format a difference with its sign."""
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{decimal(abs(value))}"


def decimal_cell(value: float | None) -> Cell:
    """Return the cell of a value; – if it is None."""
    if value is None:
        return Cell(text=NONE, order="", kind="none")
    return Cell(text=decimal(value), order=value)
