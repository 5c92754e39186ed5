"""Reports: one model of text, tables and figures, and its renderers for HTML, Markdown, LaTeX and the terminal."""
