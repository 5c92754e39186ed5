"""The tools: their arguments and descriptions are what an assistant sees of citerec."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from citerec.api.corpus import SearchFilter
from citerec.api.listed import SUFFIXES
from citerec.api.recommender import Recommender
from citerec.bibliography.paper_list import PaperList, parse_paper_list, read_paper_list
from citerec.errors import BadInputError, ConfigError
from citerec.references.check import check_list
from citerec.serve.mcp import views
from citerec.serve.mcp.outputs import (
    BibliographyCheck,
    CorpusInfo,
    Found,
    Links,
    PaperCard,
    Recommended,
)
from citerec.serve.mcp.worker import Worker

MAX_K, MAX_OFFSET = 50, 10_000
MAX_CONTENT = 2_000_000  # characters of a bibliography

Id = Annotated[
    str, Field(min_length=1, max_length=1_000, description="An id of this corpus, or a DOI.")
]
Papers = Annotated[
    list[Annotated[str, Field(max_length=2_000)]],
    Field(max_length=500),
]
K = Annotated[int, Field(ge=1, le=MAX_K, description="The number of papers.")]
Offset = Annotated[
    int, Field(ge=0, le=MAX_OFFSET, description="0, or next_offset of the page before.")
]
Year = Annotated[int | None, Field(ge=1, le=9999)]
AbstractChars = Annotated[
    int, Field(ge=0, le=2_000, description="Characters of each abstract; 0 for no abstracts.")
]
Content = Annotated[
    str,
    Field(
        max_length=MAX_CONTENT,
        description="The text of the bibliography: BibTeX, RIS, CSL-JSON, or ids and DOIs, one a line.",
    ),
]


class Tools:
    """The tools, over one recommender; each method is one tool, and its docstring is its description."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def recommend(
        self,
        title: Annotated[str, Field(max_length=2_000, description="The title of the draft.")] = "",
        abstract: Annotated[
            str, Field(max_length=50_000, description="Its abstract; makes the list much better.")
        ] = "",
        context: Annotated[
            str,
            Field(
                max_length=10_000,
                description="A sentence that needs references, [CITE] at the place; with title and abstract of its "
                "draft, or alone.",
            ),
        ] = "",
        cited: Annotated[
            Papers,
            Field(
                description="What the draft cites already, as ids, DOIs or titles: the list learns from it and leaves "
                "it out. Alone, without a draft: what this list of references lacks."
            ),
        ] = [],  # noqa: B006
        exclude: Annotated[
            Papers, Field(description="Papers to leave out, as ids, DOIs or titles.")
        ] = [],  # noqa: B006
        year_max: Annotated[Year, Field(description="The latest year of a paper.")] = None,
        k: K = 10,
        explain: Annotated[
            bool, Field(description="Whether to give reasons for each paper.")
        ] = True,
        abstract_chars: AbstractChars = 300,
    ) -> Recommended:
        """Recommend papers of this corpus that a draft, or a sentence of it, should cite, best first.

        Give the title and the abstract of the draft, or a sentence as context, or what it cites already, or all of
        them. Only papers of this corpus are found. Check by get_paper what a paper says before you cite it.
        """

        def work(recommender: Recommender) -> Recommended:
            words = {"title": title, "abstract": abstract, "context": context}
            given: dict[str, Any] = {name: text for name, text in words.items() if text.strip()}
            if not given and not cited:
                raise ConfigError(
                    "there is nothing to recommend for; give title and abstract, or context, or cited"
                )
            result = recommender.recommend(
                **given,
                k=k,
                cited=cited or None,
                excluded=exclude or None,
                year_max=year_max,
                explain=explain,
            )
            return views.recommended(recommender, result, abstract_chars)

        return await self._worker.run(work)

    async def search(
        self,
        keywords: Annotated[
            str,
            Field(
                min_length=1,
                max_length=2_000,
                description="Words of titles and abstracts; no operators or quotes.",
            ),
        ],
        year_min: Annotated[Year, Field(description="The first year.")] = None,
        year_max: Annotated[Year, Field(description="The last year.")] = None,
        author: Annotated[
            str,
            Field(max_length=200, description="Words of the name of one author, such as: Knuth"),
        ] = "",
        venue: Annotated[
            str, Field(max_length=200, description="Words of the name of the venue, such as: SIGIR")
        ] = "",
        k: K = 10,
        offset: Offset = 0,
        abstract_chars: AbstractChars = 200,
    ) -> Found:
        """Search the titles and abstracts of this corpus by keywords (BM25), best first.

        A paper need not have all keywords. To find papers for a draft or a sentence, use recommend.
        """

        def work(recommender: Recommender) -> Found:
            wanted = SearchFilter(year_min=year_min, year_max=year_max, author=author, venue=venue)
            result = recommender.corpus.search(keywords, k=k + 1, offset=offset, filter=wanted)
            return views.found(recommender, result, k, abstract_chars)

        return await self._worker.run(work)

    async def get_paper(self, id: Id) -> PaperCard:
        """Return one paper of this corpus with its abstract, counts of citations and a BibTeX entry."""
        return await self._worker.run(
            lambda recommender: views.card(recommender, recommender.corpus.paper(id))
        )

    async def references_and_citers(
        self,
        id: Id,
        direction: Annotated[
            Literal["both", "references", "cited_by"],
            Field(description="references: papers that it cites; cited_by: papers that cite it."),
        ] = "both",
        k: Annotated[int, Field(ge=1, le=MAX_K, description="Papers of each direction.")] = 10,
        offset: Offset = 0,
    ) -> Links:
        """Return the papers of this corpus that a paper cites, and those that cite it, most cited first."""

        def work(recommender: Recommender) -> Links:
            corpus = recommender.corpus
            paper = corpus.paper(id).paper
            pages = {
                name: views.link_page(recommender, linked(paper.id, k=k, offset=offset))
                for name, linked in (
                    ("references", corpus.references),
                    ("cited_by", corpus.cited_by),
                )
                if direction in ("both", name)
            }
            return Links(
                id=paper.id,
                title=views.short(paper.title, views.LONG_LINE),
                references=pages.get("references"),
                cited_by=pages.get("cited_by"),
            )

        return await self._worker.run(work)

    async def check_bibliography(
        self, content: Content, k: Annotated[int, Field(ge=1, le=200)] = 50, offset: Offset = 0
    ) -> BibliographyCheck:
        """Compare a bibliography with this corpus: other years, DOIs and titles, published preprints, duplicates.

        Entries that the corpus does not have are not compared: that is no error of theirs.
        """
        return await self._checked(lambda: parse_paper_list(_lines(content), "content"), k, offset)

    async def check_bibliography_file(
        self,
        content: Content = "",
        path: Annotated[
            str,
            Field(
                max_length=4_000,
                description="In place of content: a .bib, .ris, .json or .txt file.",
            ),
        ] = "",
        k: Annotated[int, Field(ge=1, le=200, description="The number of problems.")] = 50,
        offset: Offset = 0,
    ) -> BibliographyCheck:
        """Compare a bibliography with this corpus, as `check_bibliography` does; it may also be a file."""
        if bool(content.strip()) == bool(path.strip()):
            raise ConfigError(
                "give either content, the text of the bibliography, or path, its file"
            )
        if content.strip():
            return await self.check_bibliography(content, k, offset)
        return await self._checked(lambda: read_paper_list(_bibliography(path)), k, offset)

    async def corpus_info(self) -> CorpusInfo:
        """Return what this corpus holds, and which models recommend from it."""
        return await self._worker.run(views.corpus_info)

    async def _checked(
        self, read: Callable[[], PaperList], k: int, offset: int
    ) -> BibliographyCheck:
        return await self._worker.run(
            lambda recommender: views.checked(
                check_list(read(), recommender.index.papers), offset, k
            )
        )


def _bibliography(path: str) -> Path:
    """Return the path of a bibliography; files of other kinds are refused, so that none is disclosed by its errors."""
    file = Path(path.strip()).expanduser()
    if file.suffix.lower() not in SUFFIXES:
        raise BadInputError(file, f"expected a file that ends with {', '.join(sorted(SUFFIXES))}")
    return file


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
