"""Names that try to break out of a page."""

NASTY = [
    '<script>alert("x")</script>',
    "</script><script>alert(1)</script>\x1b[31m\u202e\\input{x}|$\\frac{",
    '"><img src=x onerror=alert(1)>',
    "</title><b>",
    "[a](javascript:alert(1))",
    "$\\frac{",
    "_a|b & c",
    "50% of_a & $x^2$ {\\~}#",
    'a <b> | "c" \N{RIGHTWARDS ARROW} d \N{EN DASH} é',
    "模型\n2",
    "_hidden",
]
