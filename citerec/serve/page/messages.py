"""Messages of the command line in words of the page, which has fields and buttons in place of options."""

import re

_IN_WORDS_OF_THE_PAGE = (
    (re.compile(r"^'query' "), "This draft "),
    (re.compile(r"give --year-max (\d+) or a later year"), r"set the latest year to \1 or later"),
    (re.compile(r"--year-max"), "the latest year of papers"),
    (re.compile(r"--exclude"), "the hidden papers"),
    (re.compile(r"--cited"), "the papers that you cite"),
    (re.compile(r"--context"), "the sentence"),
)
_COMMAND = re.compile(r"[;,:] [^;]*(?:\bciterec [a-z]+ |(?<![\w-])--[a-z])[^;]*$")


def in_words_of_the_page(message: str, instead: str = "") -> str:
    """Return a message without options; a last clause that gives a command to type becomes `instead`."""
    for pattern, words in _IN_WORDS_OF_THE_PAGE:
        message = pattern.sub(words, message)
    return _COMMAND.sub(instead, message)
