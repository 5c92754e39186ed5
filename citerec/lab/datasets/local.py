"""Small corpora that are not published with the project; users name their folder with `--from`."""

from citerec.lab.datasets.dataset import Dataset, DatasetItem, RemoteFile

PACKED = ("corpus.jsonl", "corpus.jsonl.zst", "corpus.jsonl.bz2")


def _local(
    name: str,
    title: str,
    about: str,
    licence: str | None,
    citation: str = "",
    sources: tuple[str, ...] = (),
) -> Dataset:
    splits = (f"splits/{split}.ids" for split in ("train", "dev", "test"))
    return Dataset(
        name=name,
        title=title,
        about=about,
        url=None,
        licence=licence,
        citation=citation,
        stated=sources,
        items=(
            DatasetItem(file=RemoteFile(name="corpus.jsonl.gz"), aliases=PACKED),
            *(DatasetItem(file=RemoteFile(name=split)) for split in splits),
        ),
    )


VIS = _local(
    "vis",
    "Papers of IEEE VIS",
    "visualization: conference papers from 1990 on and those of its journals, with reference lists of CrossRef",
    licence=None,
    citation="Isenberg et al., vispubdata.org: A Metadata Collection about IEEE Visualization Publications, TVCG 2017",
    sources=("github.com/pisenberg/vispubdata", "github.com/john-guerra/visPubNetwork"),
)
BIOMED = _local(
    "biomed",
    "Life sciences, open access",
    "articles of eLife and of EuropePMC on plants, and what they cite, mostly by its title alone",
    licence="CC BY 3.0, CC BY 4.0 or CC0, by article",
    sources=("github.com/elifesciences/elife-articles", "github.com/petermr/tigr2ess"),
)
ACM_VIS = _local(
    "acm_vis",
    "Computing at large",
    "papers of ACM-CR and of vis; the latter and 50 others cite, the rest are candidates",
    licence=None,
    sources=("github.com/boudinfl/acm-cr", "and those of vis"),
)
