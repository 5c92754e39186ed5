"""The keyboard shortcuts of the page; `static/keys.js` acts on them."""

SHORTCUTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("j", "k"), "Next and previous paper"),
    (("o", "Enter"), "Open the paper: abstract, references, citing papers"),
    (("i",), "I know this one: mark it as cited"),
    (("h",), "Hide it"),
    (("u",), "Undo the last mark"),
    (("x",), "Select it for export"),
    (("c",), "Copy the BibTeX of the selected papers"),
    (("n",), "Show the new order"),
    (("/",), "Edit the draft"),
    (("Ctrl", "Enter"), "Find papers"),
    (("?",), "This help"),
    (("Esc",), "Close what is open"),
)
