"""Restrictions of an evaluation set, as those of published results."""

from collections.abc import Mapping
from dataclasses import replace

from pydantic import Field

from citerec.config import Settings
from citerec.errors import ConfigError
from citerec.evaluation.protocol import EvalSet
from citerec.index.folder import IndexFolder
from citerec.index.papers import NO_YEAR
from citerec.rules.held_out import train_papers
from citerec.types import Eligibility, Query

TOO_FEW = "with fewer gold citations than required"


class Rules(Settings):
    """Restricts the queries of a split and their candidates; no restriction by default.

    Citeomatic's DBLP and PubMed use `Rules(min_gold=10, train_only=True)`.

    Source: Bhagavatula et al., NAACL 2018, section 4, https://aclanthology.org/N18-1022.
    """

    min_gold: int = Field(default=1, ge=1)  # gold citations of a query at least
    # restrict candidates and gold to the years of the train queries
    train_only: bool = False


def restricted(index: IndexFolder, eval_set: EvalSet, rules: Rules) -> EvalSet:
    """Apply the rules to an evaluation set; ConfigError if no query is left."""
    if rules == Rules():
        return eval_set
    years = index.papers.years
    latest = None
    if rules.train_only:
        train_years = years[train_papers(index)]
        latest = int(train_years.max(initial=NO_YEAR)) or None
    queries: list[Query] = []
    rules_of: list[Eligibility] = []
    qrels: dict[str, Mapping[str, int]] = {}
    for query, rule in zip(eval_set.queries, eval_set.eligible, strict=True):
        grades = eval_set.qrels[query.id]
        gold = sorted(grades)
        bound = rule
        if latest is not None:  # a paper without a year is not known to be later
            bound = replace(rule, year_max=min(rule.year_max or latest, latest))
            pairs = zip(gold, index.papers.rows_of(gold), strict=True)
            gold = [docid for docid, row in pairs if years[row] <= latest]
        if len(gold) >= rules.min_gold:
            queries.append(query)
            rules_of.append(bound)
            qrels[query.id] = {docid: grades[docid] for docid in gold}
    if not queries:
        raise ConfigError(
            f"the {eval_set.split} split of {index.path} has no query with {rules.min_gold} gold citations"
        )
    left_out = {**eval_set.left_out, TOO_FEW: len(eval_set.queries) - len(queries)}
    return replace(
        eval_set,
        queries=tuple(queries),
        eligible=tuple(rules_of),
        qrels=qrels,
        left_out=left_out,
    )
