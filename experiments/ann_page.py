"""The page of `ann.py`: tables of builds and searches, by the number of papers."""

from collections.abc import Iterator
from typing import Any

_HEAD = """# Approximate search of vectors

HNSW and IVF against exact search, on synthetic corpora (`python experiments/ann.py`; the corpora are those of
`experiments/synthetic.py`, where a vector is the mean of two real ones with noise). The queries are vectors of real
papers that are not in the corpora. Recall@1000 is the share of the first 1000 hits of exact search that are among the
first 1000 hits; recall@100 likewise. Times are those of the processor on one thread, for warm queries one by one (p50,
p95) and as a batch. Memory is what the process holds beyond Python and NumPy; for a build it is the peak, without the
vectors on the disk.

A year bound leaves a share of the papers. The effort (`efSearch` of HNSW, `nprobe` of IVF) that the build chose is
printed in bold. Under a year bound the search divides the effort by the share that is left.
"""


def page(results: dict[str, Any]) -> str:
    """Return the page of all results, by papers and structure."""
    lines = [_HEAD.rstrip()]
    for size in sorted(results, key=int):
        lines += [*_builds(int(size), results[size]), *_searches(results[size])]
    return "\n".join(lines) + "\n"


def _builds(papers: int, structures: dict[str, Any]) -> Iterator[str]:
    machines = sorted({_described(measured["machine"]) for measured in structures.values()})
    yield from ("", f"## {papers:,} papers", "", f"Measured on {'; '.join(machines)}.", "")
    heads = "build, processor s | by the clock s | peak MiB | file, MB | open, ms | open, own MiB"
    yield f"| | settings | {heads} |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for name, measured in structures.items():
        built, opened = measured["build"], measured["open"]
        seconds = f"{built['seconds']['processor']:,.0f} | {built['seconds']['wall']:,.0f}"
        sizes = f"{built['peak_mib']:,} | {built['mb']:,.0f}"
        cost = f"{1000 * opened['seconds']:,.0f} | {opened['mib']['own']:,}"
        yield f"| {name} | {measured['what']} | {seconds} | {sizes} | {cost} |"


def _searches(structures: dict[str, Any]) -> Iterator[str]:
    yield ""
    costs = "one query, p50 ms | p95 ms | in a batch, ms"
    yield f"| | effort | papers left | recall@1000 | recall@100 | {costs} |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for name, measured in structures.items():
        for one in measured["searches"]:
            effort = "" if one["effort"] is None else str(one["effort"])
            effort = f"**{effort}**" if one["chosen"] and effort else effort
            recalls = f"{one['recall']['1000']:.3f} | {one['recall']['100']:.3f}"
            costs = f"{one['p50_ms']:,.1f} | {one['p95_ms']:,.1f} | {one['batch_ms']:,.1f}"
            yield f"| {name} | {effort} | {one['eligible']:.0%} | {recalls} | {costs} |"


def _described(machine: dict[str, Any]) -> str:
    return f"{machine['processor']}, faiss {machine['faiss-cpu']}, NumPy {machine['numpy']}"
