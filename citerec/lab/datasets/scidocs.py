"""SciDocs: the evaluation suite of SPECTER, a folder of published files."""

from citerec.lab.datasets.dataset import Dataset, DatasetItem, RemoteFile

S3 = "https://ai2-s2-research-public.s3-us-west-2.amazonaws.com/specter/scidocs"
RANKED = ("coview", "coread", "cite", "cocite")
CLASSIFIED = ("mag", "mesh")
FILES = (
    *(f"paper_metadata_{name}.json" for name in ("mag_mesh", "view_cite_read", "recomm")),
    *(f"{task}/{split}.qrel" for task in RANKED for split in ("val", "test")),
    *(f"{task}/{split}.csv" for task in CLASSIFIED for split in ("train", "val", "test")),
    *(f"recomm/{split}.csv" for split in ("train", "val", "test")),
    "recomm/propensity_scores.json",
)
OPTIONAL = ("recomm/train_similar_papers_model.json",)  # settings of the authors' code

SCIDOCS = Dataset(
    name="scidocs",
    title="SciDocs",
    about="seven tasks that evaluate vectors of papers: classification, ranking and recommendation",
    url=f"{S3}/",
    citation=(
        "Cohan et al., SPECTER: Document-level Representation Learning using Citation-informed "
        "Transformers, ACL 2020"
    ),
    stated=(
        "place (s3://ai2-s2-research-public/specter/scidocs/, in us-west-2): allenai/scidocs, README.md",
        "paths: allenai/scidocs, scidocs/paths.py",
        "4.6 GiB for the whole folder, with vectors of SPECTER that are not fetched here: allenai/scidocs, README.md",
    ),
    items=tuple(
        DatasetItem(
            file=RemoteFile(name=name, urls=(f"{S3}/{name}",)), required=name not in OPTIONAL
        )
        for name in (*FILES, *OPTIONAL)
    ),
)
