"""Runs every step of a search in Java once, to list the classes that it loads (see `jvm_archive`)."""

from pathlib import Path
from tempfile import TemporaryDirectory

from citerec.config import Bm25Config
from citerec.index.bm25 import Bm25Builder
from citerec.index.lucene_analysis import analyze_by_lucene
from citerec.java import java_class, start_jvm
from citerec.retrieve.lucene import Lucene
from citerec.text import QueryForm
from citerec.types import Paper, Query

PAPERS = [
    Paper(id="luhn", title="The automatic creation of abstracts", year=1958),
    Paper(id="price", title="Networks of scientific papers", abstract="Citations.", year=1965),
]
QUERY = Query(id="query", title="Citation networks", abstract="Who cites, and who is cited.")


def list_classes(file: str) -> None:
    """Write the list of the classes that a search loads, and end this process: Java completes the list at its exit."""
    start_jvm(quick=True, more=("-Xshare:off", f"-XX:DumpLoadedClassList={file}"))
    with TemporaryDirectory() as folder:
        bm25 = Path(folder, "bm25")
        builder = Bm25Builder(bm25, threads=1)
        builder.add(PAPERS)
        builder.close()
        _search(bm25)
    java_class("java.lang.System").exit(0)


def _search(folder: Path) -> None:
    for form in QueryForm:
        lucene = Lucene(folder, Bm25Config(form=form))
        for year_max, exhaustive in ((None, True), (1960, False)):
            bag = lucene.bag(QUERY, year_max)
            lucene.top(bag, len(PAPERS), exhaustive=exhaustive)
        lucene.weights(lucene.bag(QUERY), 1)
        analyze_by_lucene(QUERY.title)
