"""PubMed: biomedicine, ClusCite's corpus as Citeomatic gives it; train to 2008, dev 2009, test 2010 to 2013."""

from citerec.lab.datasets.citeomatic import Years, citeomatic_dataset

PUBMED = citeomatic_dataset(
    "pubmed",
    "PubMed (ClusCite, Citeomatic's format)",
    "papers of biomedicine with abstracts and references",
    Years(train=2008, dev=2009, test=2013),
)
