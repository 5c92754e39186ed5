"""DBLP: computer science, ClusCite's corpus as Citeomatic gives it; train to 2007, dev 2008, test 2009 to 2011."""

from citerec.lab.datasets.citeomatic import Years, citeomatic_dataset

DBLP = citeomatic_dataset(
    "dblp",
    "DBLP (ClusCite, Citeomatic's format)",
    "papers of computer science with abstracts and references",
    Years(train=2007, dev=2008, test=2011),
)
