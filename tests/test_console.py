"""The comparer of console blocks tolerates rounding, and nothing else."""

import pytest
from support.console import DECIMAL, PERCENT, difference

LIST = """\
#  Year  Paper                        Score
1  2020  Passage search in 3 steps    62 %
         cited by 6 of the 50 most similar papers
2  2019  Late interaction              9 %
citerec: 1 paper excluded
"""


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (LIST, LIST),
        (".322 [.274, .370]", ".325 [.270, .374]"),  # each within .005
        ("-0.078", "-0.081"),
        ("62.4%", "63.4%"),
        ("F1  9 %", "F1 10 %"),  # a column that is as wide as its numbers
        ("...\n bm25 ...\n...\nend", "x\ny\n bm25 .1 .2\n dense .3\nend"),
        ("a ... d", "a b c d"),
        ("... .5\nend", ".1 .5\n.7 .5\nend"),  # the first .5 is not the one
    ],
)
def test_a_number_may_differ_by_the_tolerance_and_three_dots_are_any_text(
    shown: str, printed: str
) -> None:
    assert (DECIMAL, PERCENT) == (0.005, 1)

    assert difference(shown, printed) == ""


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (".322", ".328"),  # .006
        (".322", "-.322"),
        ("62 %", "64 %"),
        ("62 %", "0.62"),
        ("2019", "2020"),  # whole numbers are exact: years, counts
        ("10.1145/3397271.3401075", "10.1145/3397271.3401076"),  # a DOI is text
        ("version 1.2.3", "version 1.2.4"),
        ("Late interaction", "Early interaction"),
        ("62 %\n         cited", "62 %\n  cited"),  # indentation
        ("62 %\n         cited", "62 % cited"),  # a line break is missing
        ("...\n bm25 ...\nend", "x\n rrf .1\nend"),
    ],
)
def test_anything_else_is_found(shown: str, printed: str) -> None:
    assert difference(f"a\n{shown}\nb", f"a\n{printed}\nb").startswith("expected")


def test_entries_of_a_ranked_list_may_swap_within_the_tolerance_only() -> None:
    shown = "Score\n1  2020  A  62 %\n   why A\n2  2019  B  61 %\n   why B\n3  2018  C  40 %\nend"
    swapped = "Score\n1  2019  B  62 %\n   why B\n2  2020  A  61 %\n   why A\n3  2018  C  40 %\nend"
    far = "Score\n1  2020  A  62 %\n   why A\n2  2018  C  41 %\n3  2019  B  40 %\n   why B\nend"

    assert difference(shown, swapped) == ""
    assert difference(shown, far)
    assert difference(shown, swapped.replace("62", "70").replace("61", "60"))
