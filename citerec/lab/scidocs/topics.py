"""A map of papers by topic, and how well its clusters match the topics (SPECTER, section 6, figure 2)."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.errors import ConfigError, extra, writing
from citerec.files.arrays import Vectors
from citerec.lab.scidocs.classify import load, one_thread

SAMPLE = 2000  # papers of a map
FEWEST = 20  # papers of a map
NEIGHBOURS = 5  # points within eps of a core point
NEAR = 80  # percent of the points that are core points
SHOWN = 20  # topics with a colour and an entry in the legend

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TopicMap:
    """Papers on a plane, and their clusters."""

    xy: Floats  # shape (papers, 2)
    homogeneity: float  # in [0, 1]; 1 if each cluster is of one topic
    completeness: float  # in [0, 1]; 1 if each topic is in one cluster
    clusters: npt.NDArray[np.int64]  # of each paper; -1 for one that is in none


def topic_map(vectors: Vectors, labels: Sequence[str], *, seed: int = 0) -> TopicMap:
    """Map papers to a plane by t-SNE, cluster them by DBSCAN, and compare the clusters with the topics.

    The paper states no settings of DBSCAN. Here a core point has 5 points, including itself, within eps, and eps makes
    80 % of all points core points: the 80th percentile of the distance to the fourth nearest other point, after Ester
    et al. 1996. The topics are not used for it. Papers without a cluster count as one cluster. The same seed gives the
    same map on the same machine.

    Args:
        vectors: One finite row per paper; t-SNE takes some 10 s for 2,000.
        labels: The topic of each paper.
        seed: Of t-SNE.

    Raises:
        ConfigError: If there are fewer than 20 papers, not one finite vector and label for each, or all vectors are
            equal.
    """
    if len(vectors) != len(labels) or len(labels) < FEWEST:
        raise ConfigError(
            f"{len(vectors)} vectors and {len(labels)} topics; a map needs one of each for {FEWEST} papers or more"
        )
    if not np.isfinite(vectors).all():
        raise ConfigError("a paper of the map has no vector")
    if (vectors == vectors[0]).all():
        raise ConfigError(
            f"the {len(vectors)} vectors are all the same; a map needs different ones"
        )
    perplexity = min(30.0, (len(labels) - 1) / 3)
    with one_thread():
        project = load("manifold").TSNE(
            perplexity=perplexity,
            init="pca",
            learning_rate="auto",
            random_state=seed,
            n_jobs=1,
        )
        xy = np.asarray(project.fit_transform(vectors.astype(np.float32)), np.float64)
    clusters = find_clusters(xy)
    measures = load("metrics")
    return TopicMap(
        xy,
        float(measures.homogeneity_score(labels, clusters)),
        float(measures.completeness_score(labels, clusters)),
        clusters,
    )


def find_clusters(xy: Floats) -> npt.NDArray[np.int64]:
    """Cluster points by density; return the cluster of each point, -1 for none."""
    nearest = load("neighbors").NearestNeighbors(n_neighbors=NEIGHBOURS).fit(xy)
    distances = nearest.kneighbors(xy)[0][:, -1]  # a point is its own first neighbour
    eps = max(float(np.percentile(distances, NEAR)), 1e-9)
    return load("cluster").DBSCAN(eps=eps, min_samples=NEIGHBOURS).fit_predict(xy)


def draw_sample(
    labels: Sequence[str], *, most: int = SAMPLE, seed: int = 0
) -> list[int]:
    """Sample up to `most` papers with a topic; return their places, rising."""
    labelled = [place for place, label in enumerate(labels) if label]
    drawn = np.random.default_rng(seed).permutation(len(labelled))[:most]
    return sorted(labelled[i] for i in drawn.tolist())


def draw_topics(topics: TopicMap, labels: Sequence[str], path: Path) -> None:
    """Draw a map with a colour for each of the 20 most common topics, grey for others; PNG, SVG or PDF by the name.

    The same map gives the same file.

    Raises:
        OutputError: If the file cannot be written.
        MissingExtraError: If matplotlib is not installed.
    """
    with extra("lab"):
        from matplotlib import rc_context
        from matplotlib.figure import Figure

    kind = path.suffix.removeprefix(".")
    figure: Any = Figure(figsize=(7.6, 5.2), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    common = [
        name for name, _ in sorted(Counter(labels).items(), key=lambda n: (-n[1], n[0]))
    ]
    # A leading underscore would hide a topic from the legend; others shall have one line there.
    for number, name in enumerate(common):
        members = np.array([label == name for label in labels])
        label = (
            f" {name:.28}" if number < SHOWN else "others" if number == SHOWN else "_"
        )
        colour = f"C{number % 10}" if number < SHOWN else "lightgrey"
        # the ten colours come twice
        marker = "o" if number < 10 or number >= SHOWN else "^"
        style = {"s": 6, "marker": marker, "color": colour, "linewidths": 0}
        axes.scatter(*topics.xy[members].T, label=label, **style)
    axes.set(xticks=[], yticks=[])
    axes.set_title(
        f"homogeneity {topics.homogeneity:.2f}, completeness {topics.completeness:.2f}"
    )
    for text in figure.legend(
        loc="outside right upper", fontsize="x-small", markerscale=2
    ).get_texts():
        text.set_parse_math(False)  # "$" in a name is a dollar
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with (
        warnings.catch_warnings(),
        writing(path),
        rc_context({"svg.hashsalt": "citerec"}),
    ):
        # The font lacks some scripts; a box in a name is no reason to fail.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure.savefig(path, format=kind, metadata=undated)
