"""Trains a cross-encoder on the citations of an index: candidates, examples, dev measures, Trainer, model folder."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from citerec.bibliography.keys import title_key
from citerec.config import RecommendConfig
from citerec.encode.torch_backend import batches, check_positions, padded
from citerec.errors import ConfigError
from citerec.evaluation.significance import ALPHA, cross_validate
from citerec.files.arrays import Array, Flags, Numbers, Rows, Scores, concatenated
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import RERANKER, IndexFolder
from citerec.index.papers import codes
from citerec.index.vectors import similarities, vectors_of
from citerec.pipeline import Pipeline, rank_stages
from citerec.rank.ltr import ranker_of
from citerec.rerank.cross_encoder import CrossEncoder, RerankerParts, load_body
from citerec.rerank.pair import NAME as SPEC
from citerec.rerank.pair import RerankerSpec, pair, write_reranker_spec
from citerec.retrieve.fuse import interpolated, standardised
from citerec.retrieve.hybrid import HybridRetriever, open_hybrid
from citerec.text import pair_text
from citerec.train import trainer
from citerec.train.data import (
    F1,
    LabelledQueries,
    LabelledScores,
    Lists,
    Pairs,
    TrainingData,
    candidate_sets,
    dev_measures,
    dev_queries,
    platt,
    query_measures,
)
from citerec.train.settings import RerankerTraining
from citerec.types import CandidateSet, Hits, Json, Log, Progress, no_log, no_progress

MISSING = -1  # fills a list with too few negatives
# of a reranker
WEIGHTS: tuple[float, ...] = tuple(np.linspace(0, 1, 21).round(4).tolist())


def _first_stage(
    index: IndexFolder, config: RerankerTraining, log: Log
) -> HybridRetriever:
    """Open the first stage: BM25, fused with vectors where the settings want it."""
    encoder = "auto" if config.candidates == "fused" else "none"
    return open_hybrid(index, RecommendConfig(encoder=encoder, bm25=config.bm25), log)


def candidate_lists(sets: Iterable[CandidateSet]) -> tuple[Lists, Numbers]:
    """Return the papers of each candidate set, and their first-stage scores, falling in each list."""
    best = [candidates.hits for candidates in sets]
    scores = concatenated((hits.scores for hits in best), np.float32)
    return Lists.each([hits.rows for hits in best]), scores


def by_encoder(index: IndexFolder, queries: Rows, lists: Lists) -> Numbers:
    """Return the similarity of each candidate with its query by the vectors of the index, shape (entries,)."""
    dense = vectors_of(index)
    by_query: list[Scores] = []
    for i in range(len(queries)):
        [vector] = dense.vectors(queries[i : i + 1])
        papers = dense.vectors(lists[i])
        by_query.append(similarities(vector, papers, dense.similarity))
    return concatenated(by_query, np.float32)


@dataclass
class RerankerExamples:
    """The examples as a torch dataset, those of one epoch at a time: single candidates, or a positive and negatives."""

    data: TrainingData
    lists: Lists  # the candidates of each query, best first
    scores: Numbers  # first-stage scores of each candidate, falling in each list
    similarity: Numbers  # of each candidate with its query, by the encoder of the index; 0 without vectors
    config: RerankerTraining

    def __post_init__(self) -> None:
        lists = self.lists
        references = self.data.cited
        pairs = Pairs([(references.segment_ids, references.indices)], self.data.papers)
        self.cited = pairs.holds(lists.segment_ids, lists.indices)  # of each entry
        self.begin(0)
        if not len(self) or not self.cited.any():
            raise ConfigError(
                f"the first {self.config.depth} candidates of the train queries of {self.data.index.path} "
                "contain no cited paper; raise depth"
            )

    def begin(self, epoch: int) -> None:
        """Draw the examples of an epoch, shape (examples, 1 + negatives): places of candidates.

        The first of a list is cited; `MISSING` fills a list with too few negatives.
        """
        if not self.config.is_listwise:
            self.places = np.arange(len(self.cited), dtype=np.int32)[:, None]
            return
        rng = np.random.default_rng([self.config.seed, epoch])
        count = self.config.list_negatives
        most = self.config.examples or None
        lists = [np.zeros((0, 1 + count), np.int32)]
        cited, others = self._sides
        for query in np.flatnonzero(others.lengths).tolist():
            negatives = others[query]
            for positive in rng.permutation(cited[query])[:most]:
                drawn = rng.choice(negatives, min(count, len(negatives)), replace=False)
                places = np.full((1, 1 + count), MISSING, np.int32)
                places[0, : 1 + len(drawn)] = [positive, *drawn]
                lists.append(places)
        self.places = np.concatenate(lists)

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, i: int) -> Rows:
        return self.places[i]

    @cached_property
    def _sides(self) -> tuple[Lists, Lists]:
        """The cited candidates, and those with another title than the query and all its references, as places."""
        data = self.data
        lists = self.lists
        every = data.index.papers.column("title").to_pylist()
        keys = [title_key(title) or f"#{row}" for row, title in enumerate(every)]
        _, titles = codes(pa.array(keys, pa.large_string()))
        cited = Pairs(
            [(data.cited.segment_ids, titles[data.cited.indices])], len(titles) + 1
        )
        own = titles[data.queries][lists.segment_ids]
        of_entries = titles[lists.indices]
        same = (of_entries == own) | cited.holds(lists.segment_ids, of_entries)
        every = replace(lists, indices=np.arange(len(same), dtype=np.int32))
        return every.where(self.cited), every.where(~self.cited & ~same)


class Evaluation(NamedTuple):
    """What dev queries say of a model."""

    measures: Mapping[str, float] = {}
    scale: float = 1.0  # of the calibration, as `offset`
    offset: float = 0.0
    weight: float = 1.0  # the best rerank weight
    is_better: bool = False  # whether the list is significantly better with that weight than without the model


class ScoredList(NamedTuple):
    """The candidates of a dev query, with their scores before the reranking, best first, and by a model."""

    before: Numbers
    scores: Numbers
    cited: Flags
    gold: int  # papers that the query cites, retrieved or not

    def mixed(self, weight: float) -> LabelledScores:
        """Return the interpolated scores, the labels and the number of gold papers, as `dev_measures` reads them."""
        return interpolated(self.scores, self.before, weight), self.cited, self.gold


def best_weight(lists: Sequence[ScoredList]) -> tuple[float, bool]:
    """Return the best rerank weight of dev queries, and whether it is significantly better than no reranking.

    The best one has the highest product of F1 at 20 and MRR, in which a percent of either counts the same. The test
    measures the F1 of each query with the weight that is best for the others; a weight of 0 is no reranking.
    """
    table = np.stack(
        [query_measures(scored.mixed(weight) for scored in lists) for weight in WEIGHTS]
    )
    best = int(np.argmax(table.mean(1).prod(-1)))
    f1 = table[:, :, F1]
    gain, p = cross_validate(f1)
    is_better = gain > 0 and p < ALPHA and f1[best].mean() > f1[0].mean()
    return WEIGHTS[best], bool(is_better)


@dataclass(frozen=True)
class RerankerDev:
    """Dev queries and their candidates."""

    index: IndexFolder
    queries: LabelledQueries
    candidates: Sequence[Hits]
    # the lists of the ranker of the index; None without one, or if it reads the scores of rerankers
    ranker_lists: Sequence[Hits] | None

    @classmethod
    def load(
        cls, index: IndexFolder, config: RerankerTraining, log: Log
    ) -> "RerankerDev | None":
        """Draw dev queries and retrieve their candidates; None without dev queries."""
        drawn = dev_queries(index, config.dev_queries, config.seed)
        if drawn is None:
            return None
        depth = config.dev_depth
        first_stage = _first_stage(index, config, log)
        sets = first_stage.candidates(drawn.queries, drawn.eligible, depth)
        candidates = [found.hits for found in sets]
        ranker_lists = None
        ranker = ranker_of(index, RecommendConfig())
        if ranker and not ranker.reads_reranker:
            graph = TemporalGraph(index, CitationScope.TRAIN)
            stages = rank_stages(graph, ranker, None)
            pipeline = Pipeline(open_hybrid(index, RecommendConfig(), log), stages)
            ranker_lists = [found.hits.best(depth) for found in pipeline.all(drawn)]
        return cls(index, drawn, candidates, ranker_lists)

    def evaluated(
        self, parts: RerankerParts, source: Path, config: RerankerTraining
    ) -> Evaluation:
        """Evaluate a copy of the current weights; the measure `mixed` is the F1 at the best rerank weight."""
        lists = self._scored(self.candidates, frozen(parts, source, config))
        scores = np.concatenate([scored.scores for scored in lists])
        scale, offset = platt(
            scores, np.concatenate([scored.cited for scored in lists])
        )
        weight, is_better = best_weight(lists)
        measures = dev_measures(
            (scored.scores, scored.cited, scored.gold) for scored in lists
        )
        measures["mixed"] = dev_measures(scored.mixed(weight) for scored in lists)["f1"]
        return Evaluation(measures, scale, offset, weight, is_better)

    def before(self) -> dict[str, float]:
        """Return the measures of the first stage."""
        lists = zip(self.candidates, self.queries.gold, strict=True)
        measures = dev_measures(
            (hits.scores, np.isin(hits.rows, gold), len(gold)) for hits, gold in lists
        )
        return {**measures, "mixed": measures["f1"]}

    def weight_after_ranker(self, model: CrossEncoder) -> float | None:
        """Return the best weight of a model after the ranker, 0 if it does not help there; None if it has no place."""
        if self.ranker_lists is None:
            return None
        weight, is_better = best_weight(self._scored(self.ranker_lists, model))
        return weight if is_better else 0.0

    def _scored(self, lists: Sequence[Hits], model: CrossEncoder) -> list[ScoredList]:
        """Score a list of each query by a model."""
        scores = model.score(
            self.index, self.queries.queries, [hits.rows for hits in lists]
        )
        return [
            ScoredList(hits.scores, of_query, np.isin(hits.rows, gold), len(gold))
            for hits, of_query, gold in zip(
                lists, scores, self.queries.gold, strict=True
            )
        ]


def frozen(
    parts: RerankerParts, source: Path, config: RerankerTraining
) -> CrossEncoder:
    """Return a cross-encoder with a copy of the current weights, which further training does not change."""
    model = copy.deepcopy(parts.model).cpu().eval()
    return CrossEncoder(replace(parts, model=model), source, config.running)


def train_reranker(
    index: IndexFolder,
    output: Path | None,
    config: RerankerTraining,
    *,
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> trainer.TrainingReport:
    """Train a cross-encoder on the citations of an index; arguments and errors are those of `train_encoder`.

    The dev queries also calibrate the model.
    """
    target = trainer.target_of(output, index, RERANKER, SPEC, force=force)
    data, source = trainer.prepare(config, index, log)
    parts = load_base(source.folder, config)
    plan = trainer.plan_of(config, index)
    state = trainer.TrainingState(target)

    def searched() -> dict[str, Array]:
        sets = candidate_sets(
            data, _first_stage(index, config, log), config.depth, progress
        )
        lists, scores = candidate_lists(sets)
        similarity = np.zeros(len(lists.indices), np.float32)
        if config.distill and index.is_embedded:
            similarity = by_encoder(index, data.queries, lists)
        return {**asdict(lists), "scores": scores, "similarity": similarity}

    with state.open(plan, resume=resume, log=log):
        if config.distill and not index.is_embedded:
            log(
                f"{index.path} has no vectors, which would teach the model: it learns from citations alone"
            )
        arrays = trainer.cached_arrays(state.folder, "candidates", searched)
        lists = Lists(arrays.pop("indptr"), arrays.pop("indices"))
        examples = RerankerExamples(data, lists, config=config, **arrays)
        dev = RerankerDev.load(index, config, log)

        @cache
        def evaluated(step: int) -> Evaluation:
            """Evaluate the weights after an update, which are those of now when it is first evaluated."""
            if dev is None:
                return Evaluation()
            return dev.evaluated(parts, source.folder, config)

        loop = _trainer(parts, examples, evaluated if dev else None, state.folder)
        history, best = trainer.train(
            loop,
            state,
            dev.before() if dev else {},
            on_epoch=examples.begin,
            resume=resume,
            progress=progress,
            log=log,
        )
        evaluation = evaluated(best.step)
        spec = parts.spec.replace(
            scale=evaluation.scale, offset=evaluation.offset, weight=evaluation.weight
        )
        if dev:
            after = dev.weight_after_ranker(frozen(parts, source.folder, config))
            spec = spec.replace(weight_after_ranker=after)
        teacher = trainer.encoder_folder(index) if config.distill else None
        counts = {
            "papers": data.papers,
            "train_queries": len(data.queries),
            "candidates": len(examples.cited),
            "cited_candidates": int(examples.cited.sum()),
            "examples_an_epoch": len(examples),
        }
        facts = {"plan": plan, "encoder": plan["encoder"], "counts": counts}

        def save(folder: Path) -> Json:
            """Write the model, which transformers, sentence-transformers and citerec open."""
            model = parts.model
            # otherwise the local path of the base model
            model.config._name_or_path = ""
            # By default sentence-transformers applies a sigmoid to the score of a single label.
            identity = "torch.nn.modules.linear.Identity"
            model.config.sentence_transformers = {"activation_fn": identity}
            model.save_pretrained(folder)
            parts.tokenizer.model_max_length = spec.tokens
            parts.tokenizer.save_pretrained(folder)
            write_reranker_spec(folder, spec)
            return {"spec": spec}

        return trainer.finish(
            output or trainer.own_folder(target, is_better=evaluation.is_better),
            (history, best),
            config,
            index,
            source,
            facts,
            save,
            "reranker.md",
            teachers=[teacher] if teacher else [],
            is_better=evaluation.is_better,
        )


def load_base(folder: Path, config: RerankerTraining) -> RerankerParts:
    """Open the base model: a cross-encoder with one label, or any BERT-like model, which gets a new head."""
    import torch
    from transformers import AutoModelForSequenceClassification

    spec = RerankerSpec(
        query_tokens=config.query_tokens, candidate_tokens=config.candidate_tokens
    )
    parts, missing = load_body(folder, spec)
    model = parts.model
    check_positions(folder, model, spec.tokens)
    if missing or model.config.num_labels != 1:
        model.config.num_labels = 1
        fresh = AutoModelForSequenceClassification.from_config(model.config)
        fresh.base_model.load_state_dict(model.base_model.state_dict())
        model = fresh
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = config.dropout
    body = model.base_model
    if config.freeze_embeddings:
        body.embeddings.requires_grad_(False)
    layers = getattr(getattr(body, "encoder", body), "layer", [])
    if config.freeze_layers > len(layers):
        raise ConfigError(
            f"freeze_layers must be at most {len(layers)}, the layers of the model"
        )
    for layer in layers[: config.freeze_layers]:
        layer.requires_grad_(False)
    return replace(parts, model=model)


def _trainer(
    parts: RerankerParts,
    examples: RerankerExamples,
    evaluated: Callable[[int], Evaluation] | None,
    folder: Path,
) -> Any:
    """Return the Trainer: the 256 + 256 tokens of a pair need a collator of its own."""
    import torch
    from transformers import Trainer, TrainingArguments

    config = examples.config
    data = examples.data
    lists = examples.lists
    papers = examples.data.index.papers
    query_rows = data.queries[lists.segment_ids]
    starts = lists.indptr[1:-1]
    teacher, first_stage = (
        concatenated(map(standardised, np.split(values, starts)), np.float32)
        for values in (examples.similarity, examples.scores)
    )
    arguments = trainer.arguments_of(
        TrainingArguments, config, folder, has_dev=bool(evaluated)
    )
    budget = trainer.tokens_at_once(parts.model, arguments)
    tokens: dict[int, list[int]] = {}  # of papers, by row

    def collated(drawn: Sequence[Rows]) -> dict[str, Any]:
        """Return the examples in pieces that fit memory, each of examples of similar length."""
        places = np.stack(drawn)
        entries = places[places != MISSING]
        used = set(query_rows[entries].tolist()) | set(lists.indices[entries].tolist())
        new = papers.at(sorted(used - tokens.keys()))
        texts = [pair_text(paper) for paper in new.values()]
        tokens.update(zip(new, parts.cut(texts), strict=True))
        sizes = [
            places.shape[1] * max(len(ids) for ids, _ in made_pairs(example))
            for example in places
        ]
        return {"pieces": [piece(places[group]) for group in batches(sizes, budget)]}

    def made_pairs(places: Rows) -> list[tuple[list[int], int]]:
        entries = places[places != MISSING]
        rows = zip(
            query_rows[entries].tolist(), lists.indices[entries].tolist(), strict=True
        )
        return [pair(tokens[q], tokens[p], parts.specials, parts.spec) for q, p in rows]

    def piece(places: Rows) -> dict[str, Any]:
        """Return the input of some examples: the model's, and for each example the places of its pairs in it."""
        present = places != MISSING
        pairs = made_pairs(places)
        at = np.zeros(places.shape, np.int64)
        at[present] = np.arange(present.sum())
        arrays = {
            "at": at,
            "there": present,
            "cited": (examples.cited[places] & present).astype(np.float32),
            "teacher": teacher[places],
            "first_stage": first_stage[places],
        }
        firsts = [first for _, first in pairs] if parts.typed else None
        pad = parts.tokenizer.pad_token_id
        ids = [ids for ids, _ in pairs]
        read = padded(ids, range(len(ids)), pad, parts.spec.tokens, firsts)
        return {"pairs": tensors(read), **tensors(arrays)}

    def tensors(arrays: trainer.Arrays) -> dict[str, Any]:
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    class PairTrainer(Trainer):
        def training_step(
            self, model: Any, inputs: Any, num_items_in_batch: Any = None
        ) -> Any:
            """Accumulate the gradient of a batch piece by piece; return its mean loss."""
            pieces = inputs["pieces"]
            examples_in_batch = sum(len(of_piece["at"]) for of_piece in pieces)
            loss: Any = 0.0
            for number, of_piece in enumerate(pieces, start=1):
                share = len(of_piece["at"]) / examples_in_batch
                # several devices, whose batches may have other numbers of pieces, join their gradients once
                is_last = number == len(pieces)
                with nullcontext() if is_last else self.accelerator.no_sync(model):
                    loss += super().training_step(model, {**of_piece, "share": share})
            return loss

        def compute_loss(
            self,
            model: Any,
            inputs: Any,
            return_outputs: bool = False,
            num_items_in_batch: Any = None,
        ) -> Any:
            at = inputs.pop("at")
            share = inputs.pop("share")
            logits = model(**inputs.pop("pairs")).logits[:, 0].float()
            with torch.autocast(logits.device.type, enabled=False):
                loss = loss_of(logits[at], config, **inputs).mean() * share
            return (loss, None) if return_outputs else loss

        def evaluate(self, *_: object, **__: object) -> dict[str, float]:
            measures = evaluated(self.state.global_step).measures if evaluated else {}
            named = {f"eval_{name}": value for name, value in measures.items()}
            self.log(dict(named))
            self.control = self.callback_handler.on_evaluate(
                self.args, self.state, self.control, named
            )
            return named

    dataset: Any = examples
    return PairTrainer(
        parts.model,
        arguments,
        data_collator=collated,
        train_dataset=dataset,
        eval_dataset=dataset,
    )


def loss_of(
    logits: Any,
    config: RerankerTraining,
    *,
    cited: Any,
    there: Any,
    teacher: Any,
    first_stage: Any,
) -> Any:
    """Return the loss of each example, shape (lists,), from tensors of shape (lists, papers).

    `cited` is 1 for a cited paper, else 0; `there` tells whether the place holds a paper; `teacher` and `first_stage`
    are standardised in each list.
    """
    import torch

    if not config.is_listwise:
        loss_function = torch.nn.functional.binary_cross_entropy_with_logits
        return loss_function(logits, cited, reduction="none").mean(-1)

    def shares(scores: Any) -> Any:
        return torch.log_softmax(scores.masked_fill(~there, -1e9), -1)

    # Cao et al., ICML 2007 (ListNet), https://doi.org/10.1145/1273496.1273513
    total = shares(logits + config.first_stage_weight * first_stage)
    loss = -(total * cited).sum(-1) / cited.sum(-1).clamp(min=1)
    target = shares(teacher)  # KL(teacher || model) of each list
    return loss + config.distill * (target.exp() * (target - shares(logits))).sum(-1)
