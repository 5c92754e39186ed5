"""Trains a cross-encoder on the citations of an index: candidates, examples, dev measures, Trainer, model folder."""

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from citerec.bibliography.keys import title_key
from citerec.config import FuseConfig, RecommendConfig
from citerec.encode.torch_backend import batches, check_positions, padded
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.rerank.cross_encoder import CrossEncoder, RerankerParts, load_body
from citerec.rerank.pair import NAME as SPEC
from citerec.rerank.pair import RerankerSpec, pair, write_reranker_spec
from citerec.retrieve.fuse import min_max, ranks_and_scores, sigmoid
from citerec.retrieve.hybrid import HybridRetriever, open_hybrid
from citerec.text import pair_text
from citerec.train import trainer
from citerec.train.data import (
    Flags,
    LabelledQueries,
    Lists,
    Numbers,
    Pairs,
    Rows,
    TrainingData,
    candidate_sets,
    dev_measures,
    dev_queries,
    load_training_data,
    platt,
)
from citerec.train.settings import RerankerTraining
from citerec.types import CandidateSet, Log, Progress, no_log, no_progress

MISSING = -1  # fills a list with too few negatives
CPU_TOKENS, GPU_TOKENS = 4096, 65_536  # per forward pass, of pairs of similar length
# where probabilities are small, the best weight is near 1
RERANK_WEIGHTS = np.linspace(0, 1, 21).round(2)

Places = npt.NDArray[np.int32]  # numbers of entries of the candidate lists


def _first_stage(index: IndexFolder, config: RerankerTraining, log: Log) -> HybridRetriever:
    """Open the first stage: BM25, with vectors for lists and their teacher."""
    if config.is_listwise and not index.is_embedded:
        log(f"{index.path} has no vectors: candidates are those of BM25, and nothing teaches")
    encoder = "auto" if config.is_listwise else "none"
    return open_hybrid(index, RecommendConfig(encoder=encoder, fuse=FuseConfig()), log)


@dataclass(frozen=True)
class CandidateLists:
    """The candidates of queries, best first; the arrays have the shape of the entries of `lists`."""

    lists: Lists
    scores: Numbers  # first-stage scores, falling in each list
    similarity: Numbers  # by the encoder of the index; 0 without vectors

    @classmethod
    def of(cls, sets: Iterable[CandidateSet], depth: int) -> "CandidateLists":
        """Take the best `depth` papers of each candidate set."""
        each: list[Rows] = []
        scores, similarity = [np.zeros(0, np.float32)], [np.zeros(0, np.float32)]
        for one in sets:
            hits, dense = one.hits.best(depth), one.hits_by_source.get("dense")
            values = np.zeros(len(hits), np.float32)
            if dense is not None and len(dense):  # no dense hit: the similarity of the last one
                known = ranks_and_scores(dense, hits.rows)[1]
                values = np.where(np.isnan(known), dense.scores[-1], known).astype(np.float32)
            each.append(hits.rows)
            scores.append(hits.scores)
            similarity.append(values)
        return cls(Lists.each(each), np.concatenate(scores), np.concatenate(similarity))

    def standardised(self, values: Numbers) -> Numbers:
        """Return values of the entries with mean 0 and standard deviation 1 in each list; 0 if all are equal."""
        segment_ids = self.lists.segment_ids
        counts = np.maximum(self.lists.lengths, 1)
        mean = np.bincount(segment_ids, values, len(self.lists)) / counts
        centred = values - mean[segment_ids]
        deviation = np.sqrt(np.bincount(segment_ids, centred**2, len(self.lists)) / counts)
        return (centred / np.maximum(deviation, 1e-9)[segment_ids]).astype(np.float32)


@dataclass
class RerankerExamples:
    """The examples as a torch dataset, those of one epoch at a time: single candidates, or a positive and negatives."""

    data: TrainingData
    candidates: CandidateLists
    config: RerankerTraining

    def __post_init__(self) -> None:
        lists, references = self.candidates.lists, self.data.cited
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
        count, most = self.config.list_negatives, self.config.examples or None
        lists = [np.zeros((0, 1 + count), np.int32)]
        cited, others = self._sides
        for query in np.flatnonzero(others.lengths).tolist():
            negatives = others[query]
            for positive in rng.permutation(cited[query])[:most]:
                drawn = rng.choice(negatives, min(count, len(negatives)), replace=False)
                one = np.full((1, 1 + count), MISSING, np.int32)
                one[0, : 1 + len(drawn)] = [positive, *drawn]
                lists.append(one)
        self.places = np.concatenate(lists)

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, i: int) -> Places:
        return self.places[i]

    @cached_property
    def _sides(self) -> tuple[Lists, Lists]:
        """The cited candidates, and those with another title than the query and all its references, as places."""
        data, lists = self.data, self.candidates.lists
        numbers: dict[str, int] = {}
        every = data.index.papers.column("title").to_pylist()
        keys = [title_key(title) or f"#{row}" for row, title in enumerate(every)]
        titles = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
        cited = Pairs([(data.cited.segment_ids, titles[data.cited.indices])], len(titles) + 1)
        own, of_entries = titles[data.queries][lists.segment_ids], titles[lists.indices]
        same = (of_entries == own) | cited.holds(lists.segment_ids, of_entries)
        every = replace(lists, indices=np.arange(len(same), dtype=np.int32))
        return every.where(self.cited), every.where(~self.cited & ~same)


class Evaluation(NamedTuple):
    """What dev queries say of a model."""

    measures: Mapping[str, float]
    scale: float  # of the calibration, as `offset`
    offset: float
    weight: float  # the best rerank weight


@dataclass(frozen=True)
class RerankerDev:
    """Dev queries and their candidates."""

    index: IndexFolder
    queries: LabelledQueries
    candidates: CandidateLists
    cited: Flags  # of each candidate, shape (entries,)

    @classmethod
    def load(cls, index: IndexFolder, config: RerankerTraining, log: Log) -> "RerankerDev | None":
        """Draw dev queries and retrieve their candidates; None without dev queries."""
        drawn = dev_queries(index, config.dev_queries, config.seed)
        if drawn is None:
            return None
        depth, first_stage = config.dev_depth, _first_stage(index, config, log)
        sets = first_stage.candidates(drawn.queries, drawn.eligible, depth)
        candidates = CandidateLists.of(sets, depth)
        cited = [np.isin(candidates.lists[i], rows) for i, rows in enumerate(drawn.gold)]
        return cls(index, drawn, candidates, np.concatenate(cited))

    def evaluated(self, parts: RerankerParts, source: Path, config: RerankerTraining) -> Evaluation:
        """Evaluate a copy of the current weights: `mrr`, `f1`, `mixed` (the f1 at the best rerank weight), calibration.

        If the model learned to add to the first-stage scores, its rerank weight is that of the highest product of F1 at
        20 and MRR, in which a percent of either counts the same.
        """
        frozen = replace(parts, model=copy.deepcopy(parts.model).cpu().eval())
        lists = [self.candidates.lists[i] for i in range(len(self.queries))]
        encoder = CrossEncoder(frozen, source, config.running)
        scores = np.concatenate(encoder.score(self.index, self.queries.queries, lists))
        scale, offset = platt(scores, self.cited)
        probabilities = sigmoid(scale * scores.astype(np.float64) + offset)
        first = np.concatenate([min_max(self.candidates.scores[part]) for part in self._slices])
        by_weight = {
            weight: self.ranked(weight * probabilities + (1 - weight) * first)
            for weight in RERANK_WEIGHTS.tolist()
        }
        mixed = max(one["f1"] for one in by_weight.values())
        best = max(by_weight, key=lambda weight: math.prod(by_weight[weight].values()))
        weight = best if config.first_stage_weight else 1.0
        return Evaluation(self.ranked(scores) | {"mixed": mixed}, scale, offset, weight)

    def ranked(self, scores: Numbers) -> dict[str, float]:
        """Return the measures of the order by some scores, shape (entries,)."""
        pairs = zip(self._slices, self.queries.gold, strict=True)
        return dev_measures((scores[part], self.cited[part], len(gold)) for part, gold in pairs)

    @property
    def _slices(self) -> list[slice]:
        return [slice(*ends) for ends in pairwise(self.candidates.lists.indptr.tolist())]


def train_reranker(
    index: IndexFolder,
    output: Path,
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
    trainer.check_target(output, SPEC, force=force)
    trainer.prepare(config)
    data = load_training_data(index).sampled(config.queries, config.seed)
    source = trainer.find_base(config.model, index, log)
    parts, plan = load_base(source.folder, config), trainer.plan_of(config, index)
    state = trainer.TrainingState(output)

    def searched() -> dict[str, npt.NDArray[Any]]:
        sets = candidate_sets(data, _first_stage(index, config, log), config.depth, progress)
        found = CandidateLists.of(sets, config.depth)
        return {**asdict(found.lists), "scores": found.scores, "similarity": found.similarity}

    with state.open(plan, resume=resume, log=log):
        arrays = trainer.cached_arrays(state.folder, "candidates", searched)
        lists = Lists(arrays["indptr"], arrays["indices"])
        candidates = CandidateLists(lists, arrays["scores"], arrays["similarity"])
        examples = RerankerExamples(data, candidates, config)
        dev = RerankerDev.load(index, config, log)

        def evaluated() -> Evaluation:
            none = Evaluation({}, 1.0, 0.0, 1.0)
            return dev.evaluated(parts, source.folder, config) if dev else none

        loop = _trainer(parts, examples, evaluated if dev else None, state.folder)
        before = dev.ranked(dev.candidates.scores) if dev else {}
        before |= {"mixed": before["f1"]} if dev else {}
        how: Any = {"resume": resume, "progress": progress, "log": log}
        trained = trainer.train(loop, state, before, on_epoch=examples.begin, **how)
        _, scale, offset, weight = evaluated()
        spec = parts.spec.replace(scale=scale, offset=offset, weight=weight)
        teacher = trainer.encoder_folder(index) if config.distill else None
        counts = {
            "papers": data.papers,
            "train_queries": len(data.queries),
            "candidates": len(examples.cited),
            "cited_candidates": int(examples.cited.sum()),
            "examples_an_epoch": len(examples),
        }
        facts = {"plan": plan, "encoder": plan["encoder"], "counts": counts}

        def save(folder: Path) -> dict[str, Any]:
            """Write the model, which transformers, sentence-transformers and citerec open."""
            model = parts.model
            model.config._name_or_path = ""  # otherwise the local path of the base model
            # By default sentence-transformers applies a sigmoid to the score of a single label.
            identity = "torch.nn.modules.linear.Identity"
            model.config.sentence_transformers = {"activation_fn": identity}
            model.save_pretrained(folder)
            parts.tokenizer.model_max_length = spec.tokens
            parts.tokenizer.save_pretrained(folder)
            write_reranker_spec(folder, spec)
            return {"spec": spec}

        teachers = [teacher] if teacher else []
        made = output, trained, config, index, source
        return trainer.finish(*made, facts, save, "reranker.md", teachers)


def load_base(folder: Path, config: RerankerTraining) -> RerankerParts:
    """Open the base model: a cross-encoder with one label, or any BERT-like model, which gets a new head."""
    import torch
    from transformers import AutoModelForSequenceClassification

    spec = RerankerSpec(query_tokens=config.query_tokens, candidate_tokens=config.candidate_tokens)
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
        if types := getattr(body.embeddings, "token_type_embeddings", None):
            types.requires_grad_(True)  # the two segments, which an encoder never saw
    layers = getattr(getattr(body, "encoder", body), "layer", [])
    if config.freeze_layers > len(layers):
        raise ConfigError(f"freeze_layers must be at most {len(layers)}, the layers of the model")
    for layer in layers[: config.freeze_layers]:
        layer.requires_grad_(False)
    return replace(parts, model=model)


def _trainer(
    parts: RerankerParts,
    examples: RerankerExamples,
    evaluated: Callable[[], Evaluation] | None,
    folder: Path,
) -> Any:
    """Return the Trainer: the 256 + 256 tokens of a pair need a collator of its own."""
    import torch
    from transformers import Trainer, TrainingArguments

    config, candidates = examples.config, examples.candidates
    data, lists, papers = examples.data, candidates.lists, examples.data.index.papers
    query_rows = data.queries[lists.segment_ids]
    teacher = candidates.standardised(candidates.similarity)
    first_stage = candidates.standardised(candidates.scores)
    arguments = trainer.arguments_of(TrainingArguments, config, folder, has_dev=bool(evaluated))
    budget = CPU_TOKENS if arguments.device.type == "cpu" else GPU_TOKENS
    tokens: dict[int, list[int]] = {}  # of papers, by row

    def tensors(pairs: Sequence[tuple[list[int], int]]) -> dict[str, Any]:
        """Return the input of the model for some pairs."""
        each = [ids for ids, _ in pairs]
        firsts = [first for _, first in pairs] if parts.typed else None
        arrays = padded(each, parts.tokenizer.pad_token_id, parts.spec.tokens, firsts)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def collated(drawn: Sequence[Places]) -> dict[str, Any]:
        """Return the pairs in chunks of similar length, and for each list the places of its pairs in them."""
        places = np.stack(drawn)
        present = places != MISSING
        entries = places[present]
        rows = list(zip(query_rows[entries].tolist(), lists.indices[entries].tolist(), strict=True))
        new = papers.at(sorted({row for two in rows for row in two} - tokens.keys()))
        tokens.update(zip(new, parts.cut([pair_text(one) for one in new.values()]), strict=True))
        pairs = [pair(tokens[q], tokens[p], parts.specials, parts.spec) for q, p in rows]
        groups = batches([len(ids) for ids, _ in pairs], budget)
        at = np.zeros(places.shape, np.int64)
        at[present] = np.argsort(np.concatenate(groups))
        arrays = {
            "at": at,
            "there": present,
            "cited": (examples.cited[places] & present).astype(np.float32),
            "teacher": teacher[places],
            "first_stage": first_stage[places],
        }
        chunks = [tensors([pairs[i] for i in group]) for group in groups]
        return {"chunks": chunks} | {n: torch.from_numpy(a) for n, a in arrays.items()}

    class PairTrainer(Trainer):
        def compute_loss(
            self,
            model: Any,
            inputs: Any,
            return_outputs: bool = False,
            num_items_in_batch: Any = None,
        ) -> Any:
            chunks, at = inputs.pop("chunks"), inputs.pop("at")
            read = torch.cat([model(**chunk).logits[:, 0].float() for chunk in chunks])
            with torch.autocast(read.device.type, enabled=False):
                loss = loss_of(read[at], config, **inputs).mean()
            return (loss, None) if return_outputs else loss

        def evaluate(self, *_: object, **__: object) -> dict[str, float]:
            measures = evaluated().measures if evaluated else {}
            named = {f"eval_{name}": value for name, value in measures.items()}
            self.log(dict(named))
            self.control = self.callback_handler.on_evaluate(
                self.args, self.state, self.control, named
            )
            return named

    dataset: Any = examples
    return PairTrainer(
        parts.model, arguments, data_collator=collated, train_dataset=dataset, eval_dataset=dataset
    )


def loss_of(
    logits: Any, config: RerankerTraining, *, cited: Any, there: Any, teacher: Any, first_stage: Any
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
