"""Reads queries: papers or drafts without references, one or many, from a file or standard input.

A file is JSON, JSONL, CSL-JSON, BibTeX, RIS or plain text, or a document that holds one draft: LaTeX, Typst, Markdown,
Word, OpenDocument, RTF, PDF or HTML. The format is recognised by its content; the
name decides only where the content leaves it open. A document, and a text, may also hold references.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from citerec.bibliography.entry import Entry, PaperList, first_year
from citerec.corpus.contents import ContentKind, DocumentFormat
from citerec.corpus.headings import Part, label_of, part_at
from citerec.display import one_line, plural, shortened
from citerec.errors import BadInputError, ConfigError
from citerec.files.isolated import isolated
from citerec.files.reading import other_format
from citerec.types import BODY_SENTENCES, Query

_READS = (
    "citerec reads a query as JSON, JSONL, CSL-JSON, BibTeX, RIS, .nbib, .enw, LaTeX, Typst, Markdown, Word (.docx), "
    "OpenDocument (.odt), RTF, PDF, HTML or plain text; save it as one of these, or give title and abstract alone"
)

INSTEAD = "pass its main part, or --title and --abstract"
EVERY_SENTENCE = "all"  # for a context
MAX_FIRST_PARAGRAPHS = 2_000  # characters that stand for a missing abstract
MAX_FIRST_LINE = 300  # characters of a line that stands for a title
MAX_ABSTRACT = 6_000  # characters; what is longer is not an abstract
NO_TITLE = "no title was found: the start of the text stands for it"
LEAST_ABSTRACT = 40  # characters; less is a heading or a placeholder
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s|$)|[。！？]")

_BINARY = {".docx": "Word", ".odt": "OpenDocument", ".pdf": "PDF"}
_AFTER_ABSTRACT = frozenset({Part.INTRODUCTION, Part.KEYWORDS, Part.REFERENCES})


@dataclass(frozen=True, slots=True)
class QueryFile:
    """The queries of one file: at least one, in file order, with distinct ids."""

    queries: tuple[Query, ...]
    # the references of a document; None for files that have none
    cited: PaperList | None = None
    notices: tuple[str, ...] = ()  # for the user: what was recognised, what is missing
    # of the text of the only draft, with its citation markers
    lines: tuple[str, ...] = ()
    by_sentence: bool = False  # whether the queries are sentences of one draft
    name: str = ""  # of the document in messages

    @property
    def batch(self) -> bool:
        """Whether there may be more than one query; a JSONL file of one line is not a batch."""
        return len(self.queries) > 1 or self.by_sentence

    def stated(
        self, *, year: int | None = None, context: str | None = None
    ) -> "QueryFile":
        """Return the only draft with another year, and with the sentence of it that needs references; None for neither.

        `all` stands for each sentence that makes a claim without a reference: one query for each, in their order.
        ConfigError if there are several drafts, the text is no sentence, or no sentence lacks a reference.
        """
        if year is None and context is None:
            return self
        from citerec.drafts.context import read_context, without_query_markers
        from citerec.drafts.sentences import number_style, uncited

        name = "year" if context is None else "context"
        if self.batch:
            raise ConfigError(
                f"--{name} is of one draft, but there are {len(self.queries):,}; give one draft, or the "
                f'key "{name}" in each record'
            )
        draft = self.queries[0]
        if year is not None:
            draft = replace(draft, year=year)
        if context is None:
            return replace(self, queries=(draft,))
        if context != EVERY_SENTENCE:
            sentence = replace(draft, context=read_context(context), body=())
            return replace(self, queries=(sentence,))
        lines = self.lines or ("# Abstract", draft.abstract)
        draft = replace(draft, abstract=first_sentences(draft.abstract, MAX_ABSTRACT))
        if not (queries := tuple(map(without_query_markers, uncited(draft, lines)))):
            raise ConfigError(
                "the draft has no claim of five words or more without a reference"
            )
        notices = self.notices
        if style := number_style(lines):
            example = next(filter(None, map(style.search, lines)))
            found = f"numbers such as {example[0]!r} are read as citations"
            notices += (f"{self.name}: {found}" if self.name else found,)
        return replace(self, queries=queries, notices=notices, by_sentence=True)


def read_queries(
    path: str | Path,
    *,
    title: str | None = None,
    abstract: str | None = None,
    with_body: bool = True,
) -> QueryFile:
    """Read the queries of the file `path`, or of standard input if it is `-`; see `parse_queries`.

    The project of a document is the git repository that it is in.
    """
    from citerec.bibliography.paper_list import read_bytes

    data, name = read_bytes(
        path, hint="to pass a text directly: citerec recommend --title T --abstract A"
    )
    file = None if str(path) == "-" else Path(path)
    folders = file.resolve().parents if file else ()
    project = next((f for f in folders if Path(f, ".git").exists()), None)
    return parse_queries(
        data,
        name=name,
        file=file,
        project=project,
        title=title,
        abstract=abstract,
        with_body=with_body,
    )


def parse_queries(
    data: bytes,
    *,
    name: Path | str = "query",
    file: Path | None = None,
    project: Path | None = None,
    title: str | None = None,
    abstract: str | None = None,
    with_body: bool = True,
) -> QueryFile:
    """Read the queries that `data` holds, UTF-8 text or a document; `name` is that of the source in messages.

    A query without an id gets the id `query`; in a batch, `q` and its line, or its position in a list. `title` and
    `abstract` take the place of what the only draft states. A document includes others from the folder of `file`; None
    to follow nothing. Its bibliographies may be anywhere in `project`, by default in that folder alone. Without
    `with_body` title and abstract are read alone.

    BadInputError if `data` has no known format or is broken, a title is missing, or an id is repeated; ConfigError if
    there is a `title` for several drafts; MissingExtraError if a library is not installed.
    """
    from citerec.bibliography.paper_list import Kind, decode, kind_of, read_entries
    from citerec.corpus.readers import recognise
    from citerec.drafts.cited import printed_references
    from citerec.drafts.context import without_query_markers
    from citerec.drafts.sentences import body_of

    stated = {
        k: v for k, v in (("title", title), ("abstract", abstract)) if v is not None
    }
    content = recognise(data, str(name))
    if content.kind is ContentKind.DRAFT:
        return _from_document(
            DocumentFormat(content.format),
            data,
            str(name),
            file,
            project,
            stated,
            with_body,
        )
    suffix = Path(name).suffix.lower()
    if suffix in _BINARY and not other_format(data):
        raise BadInputError(
            name,
            f"this is no {_BINARY[suffix]} document, or a damaged one; open it in its "
            "program and save it again",
        )
    text = decode(data, name, reads=_READS)
    kind = kind_of(text, name)
    lines = list[str]()
    body: tuple[str, ...] = ()
    cited = None
    if kind is not Kind.TEXT:
        drafts, _ = read_entries(text, kind, name, strict=True)
    elif content.kind is ContentKind.TEXT:
        lines = text.strip().splitlines()
        parts = [part_at(line.strip()) for line in lines]
        heads = [n for n, part in enumerate(parts) if n and part in _AFTER_ABSTRACT]
        end = next(iter(heads), len(lines))
        if Part.ABSTRACT not in parts and len("".join(lines[1:end])) < LEAST_ABSTRACT:
            heads = [n for n in heads if parts[n] is Part.REFERENCES]
            end = next(iter(heads), len(lines))
        drafts = [_plain("\n".join(lines[:end]))]
        body = body_of(lines[end:])
        cited = printed_references(lines) if Part.REFERENCES in parts[1:] else None
    else:
        raise BadInputError(
            name, f"this is {content} and no draft; give it as --cited FILE"
        )
    if not drafts:
        raise BadInputError(name, f"this {kind} holds no paper; {_READS}")
    batch = len(drafts) > 1
    if stated and batch:
        raise ConfigError(
            f"--title and --abstract are for one draft, but {name} holds {len(drafts):,}; leave them out"
        )
    queries = list[Query]()
    by_id = dict[str, Entry]()
    for number, draft in enumerate(drafts, start=1):
        default_id = f"q{draft.line or number}" if batch else "query"
        query = replace(draft, **stated).to_query(name, default_id)
        if with_body:
            query = replace(query, body=body or body_of(draft.body.splitlines()))
            if draft.body and not batch:  # as those of a document, after its title
                text = draft.body.splitlines()
                lines = [draft.title, "# Abstract", draft.abstract, "", *text]
        if first := by_id.get(query.id):
            where = f"line {first.line}" if first.line else first.label
            raise draft.error(
                name, f"the id {query.id!r} is already used by {where}; give it another"
            )
        by_id[query.id] = draft
        queries.append(without_query_markers(query))
    return QueryFile(
        tuple(queries), cited, lines=tuple(lines[1:]), name=f"{name}" if cited else ""
    )


def _plain(text: str) -> Entry:
    """Return the draft of a plain text: the first line that is not blank is the title, the rest the abstract.

    Labels such as `Title:` and `Abstract:` are recognised; with both, the title may take several lines.
    """
    lines = [
        line.strip(" #\t\r") for line in text.split("\n") if line.strip(" #\t\r")
    ] or [""]
    labels = [label_of(f"{line}:") or (None, 0) for line in lines]
    starts = [
        number for number, (part, _) in enumerate(labels) if part is Part.ABSTRACT
    ]
    is_labelled = labels[0][0] is Part.TITLE
    if is_labelled:
        lines[0] = lines[0][labels[0][1] :]
    end = 1 if lines[0] else 2
    if starts and (is_labelled or starts[0] < 2):
        end = starts[0]
        lines[end] = lines[end][labels[end][1] :]
    title = " ".join(lines[:end])
    return Entry(title=title.strip(), abstract=" ".join(lines[end:]).strip(), line=1)


# --- documents that hold one draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A draft as its format states it."""

    draft: Entry
    # the first paragraphs of the text, which stand for a missing abstract
    body: str = ""
    cited: PaperList = PaperList(())  # its references
    notices: tuple[str, ...] = ()  # each one line, in reading order
    lines: Sequence[str] = ()  # as `citerec.drafts.sentences.uncited` reads them


def _from_document(
    kind: DocumentFormat,
    data: bytes,
    name: str,
    file: Path | None,
    project: Path | None,
    stated: dict[str, str],
    with_body: bool,
) -> QueryFile:
    """Return the draft of a document with its references."""
    from citerec.drafts import pandoc, pdf
    from citerec.drafts.sentences import body_of

    read = (
        partial(pdf.read, data, name)
        if kind is DocumentFormat.PDF
        else partial(pandoc.read, data, kind, name, file, project)
    )
    document = isolated(read, name, INSTEAD)
    draft = replace(document.draft, **stated)
    stated_abstract = one_line(draft.abstract)
    body = one_line(document.body)
    text = stated_abstract or body
    untitled = ""
    if not draft.title.strip() and len(text) >= LEAST_ABSTRACT:
        draft = replace(draft, title=first_sentences(text, MAX_FIRST_LINE))
        untitled = NO_TITLE
    if not draft.title.strip():
        raise BadInputError(
            name,
            f"this draft ({kind}) has no title that was found; give it yourself: --query "
            "FILE --title T",
        )
    used = "no abstract and no text was found: the title alone is used"
    if len(stated_abstract) >= LEAST_ABSTRACT or (stated_abstract and not body):
        abstract = first_sentences(stated_abstract, MAX_ABSTRACT)
        length = len(stated_abstract)
        cut = f"the abstract has {length:,} characters: the first {len(abstract):,} are used"
        used = "" if len(abstract) == length else cut
    elif abstract := first_sentences(body, MAX_FIRST_PARAGRAPHS):
        count = f"the first {len(abstract):,} characters of the text are used"
        found = f"the abstract has only {len(stated_abstract)} characters"
        used = f"{found if stated_abstract else 'no abstract was found'}: {count}"
    draft = replace(draft, abstract=abstract)
    parts = [f"title {shortened(draft.title, 100)!r}"]
    if abstract:
        parts.append(
            f"abstract {shortened(abstract, 60)!r} ({len(abstract):,} characters)"
        )
    read = body_of(document.lines) if with_body else ()
    # an abstract without its heading is among the lines
    sentences = tuple(one for one in read if one not in stated_abstract)
    if sentences:
        count = plural(len(sentences), "sentence")
        first = len(sentences) > BODY_SENTENCES
        some = f", of which the first {BODY_SENTENCES} are searched" if first else ""
        parts.append(f"a body of {count}{some}")
    if draft.authors:
        parts.append(plural(len(draft.authors), "author"))
    if draft.year:
        parts.append(f"year {draft.year} (papers of later years are left out)")
    lines = [f"{name} ({kind}): {', '.join(parts)}"]
    notices = (untitled, used, *document.notices)
    lines += [f"{name}: {notice}" for notice in notices if notice]
    query = replace(draft.to_query(name, "query"), body=sentences)
    return QueryFile(
        (query,), document.cited, tuple(lines), tuple(document.lines), name=name
    )


def first_sentences(text: str, most: int) -> str:
    """Return the sentences of `text` that fit into `most` characters; a single longer one is cut at a word."""
    if len(text) <= most:
        return text
    start = text[:most]
    ends = [match.end() for match in _SENTENCE_END.finditer(start)]
    if ends and ends[-1] > most // 4:
        return start[: ends[-1]]
    return start.rsplit(" ", 1)[0]


# the end of a line that goes on, or a word in lower case, or such in capitals, that no list of names has
_GOES_ON = re.compile(
    r"""(?:[^\n]*(?:[:–—]|\b(?i:a|an|and|as|at|by|for|from|in|of|on|or|the|to|with|de[lrs]?|und|für|et|la|y))\n
      | [^\n]*[^.?!\n]\n(?=.*\b(?:AS|AT|FOR|FROM|IN|OF|ON|OR|THE|TO|WITH)\b
        |.*\b(?!(?:and|und|et|og|och|en|y|e|i|a[ln]|bin|d[aeiou][lnrs]?|la|le|te[nr]|v[ao]n|z[u])\b)[a-zß-ÿ]+\b))
    (?!(?i:by|par|von|por)\b)[^\n]+""",
    re.VERBOSE,
)


# a line of a title page: the kind or degree of a thesis, people, an institution, an address
TITLE_PAGE = re.compile(
    r"""(?:an?\s|the\s|la\s|l['’])?(?:
      (?:bachelor|master|diplom|doktor|doctoral|phd|ph\.d\.|m\.?sc\.?|seminar|haus|abschluss|studien|projekt)(?:'?s|er)?
        [\s-]?(?:arbeit|thesis|dissertation|essay|project)\b(?:\s(?:by|for|im|in|of|submitted|zur|an|am|von)\b.*|$)
    | (?:thesis|dissertation|report|essay|project|paper)\s
        (?:(?:submitted|presented|prepared)\s(?:by|to|in|at|for|as)|in\spartial|for\sthe\sdegree)\b.*
    | (?:mémoire|rapport|thèse|projet|trabalho|trabajo|proyecto|tesina?|tese|dissertação)\s(?:professionnel|présentée?
        |d[eoi]\s(?:fin|stage|conclusão|maestr[ií]a|master|licence|mestrado|grado|graduação|doctorat|doctorado|doutorado)
        |d['’](?:entreprise|activité|études?|habilitation|ingénieur))\b.*
    | (?:submitted|presented|supervised|advised|defended)\s(?:by|to|in|at|for|on)\b.*
    | (?:vorgelegt|eingereicht|betreut|présentée?\s(?:par|à|en|pour)|soutenue?\s(?:par|le|en|à)|as\spart\sof)\b.*
    | (?:in\spartial\sful|for\sthe\s(?:degree|award)|zu[rm]\serlang).*
    | (?:academic|spring|fall|summer|winter)\s(?:year|term|semester)\b.*
    | (?:bachelor|master|doctor|licenciate)\sof\s[^:?]* | (?:prof|dr)\.\s.*
    | (?:faculty|department|institute?|chair)\s(?:of|for|für)\s[^:?]* | (?:school|college)\sof\s[^:?]*
    | (?:fakultät|lehrstuhl|fachbereich|(?:fach)?hochschule)\sfür\s[^:?]*
    | (?:faculté|faculdade|facultad|facoltà|departamento|dipartimento|département|institut[eo]?|istituto)\sd[^:?]*
    | école\s(?:normale|nationale|polytechnique|doctorale|supérieure|centrale|publique)\b.*
    | universi(?:ty\sof|t[àé]|tät|dade?|teit)\s(?!(?:als|as|com[eo]|e|en|et|i[mn]|och|und|y)\b)
        [^\s:?]+(?:\s[^\s:?]+){0,3}
    | (?:technische|freie)\suniversität\b.*
    | (?:(?!(?:a|an|the|at|in|to|of|and|for)\b)[^\s:?]+\s){1,2}(?:universit\w{0,3}|hochschule)
    | .*(?:\S@\S+\.\w|https?:|\bdoi:|\bdoi\.org).*)$""",
    re.IGNORECASE | re.VERBOSE,
)


def continues_title(line: str, last: str) -> bool:
    """Whether a bold line is no name or part, but of the title of which `last` is the bold line above it."""
    for text in (line, last):
        if part_at(text) or label_of(text) or TITLE_PAGE.match(text):
            return False
    return bool(_GOES_ON.fullmatch(f"{last}\n{line}"))


def document_year(text: str) -> int | None:
    """Return the year of a date as authors write it; None if it has none from 1900 to 2100."""
    year = first_year(text)
    return year if year in range(1900, 2101) else None
