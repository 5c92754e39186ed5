"""Trains an encoder on the citations of an index: examples, hard negatives, dev measures, Trainer, model folder."""

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from citerec.config import Bm25Config, RecommendConfig
from citerec.encode.encoder import Encoder, TransformerEncoder, fingerprint_of
from citerec.encode.models import ModelSource
from citerec.encode.spec import NAME as SPEC
from citerec.encode.spec import (
    EncoderSpec,
    Fingerprint,
    Pooling,
    Similarity,
    read_spec,
    write_spec,
)
from citerec.encode.torch_backend import Parts, load_parts
from citerec.errors import ConfigError
from citerec.files.arrays import Flags, Rows, batched
from citerec.index.folder import IndexFolder
from citerec.index.papers import Papers
from citerec.index.vectors import similarities
from citerec.retrieve.hybrid import open_hybrid
from citerec.rules.eligible import within
from citerec.text import encoder_text
from citerec.train import trainer
from citerec.train.data import (
    Lists,
    TrainingData,
    candidate_sets,
    dev_measures,
    dev_queries,
)
from citerec.train.settings import EncoderTraining
from citerec.types import (
    Eligibility,
    Json,
    Log,
    Paper,
    Progress,
    Query,
    no_log,
    no_progress,
)

NAME = "encoder"  # its folder among the models of an index
MARGIN = 1.0  # of the triplets, in units of the distance; SPECTER's
TEMPERATURE = 0.05  # of in-batch negatives
MISSING = -1  # marks a negative that is still to be drawn
# Hard negatives of these ranks: many papers of the best ranks could also be cited.
# from 1
MINE_FROM = 10
MINE_TO = 100
MAX_HARD = 500  # references of references of a query that are kept, drawn at random
CHUNK = 4096  # queries whose references of references are made at once


def cited_by_cited(data: TrainingData, *, seed: int = 0) -> Lists:
    """Return for each query the references of its references, without its own references and itself.

    Only references that are train queries have references themselves.

    Source: Cohan et al., ACL 2020, section 2.4, https://arxiv.org/abs/2004.07180.
    """
    rng = np.random.default_rng([seed, 1])
    forbidden = data.pairs()
    each: list[Rows] = []
    for rows in batched(data.queries, CHUNK):
        second_order = (data.links[rows] @ data.links).tocsr()
        second_order.sort_indices()
        lists = Lists(
            second_order.indptr.astype(np.int64), second_order.indices.astype(np.int32)
        )
        lists = lists.where(~forbidden.holds(rows[lists.segment_ids], lists.indices))
        drawn = np.sort(lists.drawn(MAX_HARD, rng, repeat=False))
        each += [row[row != MISSING] for row in drawn]
    return Lists.each(each)


def mined(
    data: TrainingData, *, threads: int, progress: Progress, log: Log = no_log
) -> Lists:
    """Return for each query the papers of rank `MINE_FROM` to `MINE_TO` of the first stage, best first.

    These are allowed papers that are of no later year and that the query does not cite. The first stage fuses BM25
    and the vectors of the index, if it has some.
    """
    retrieval = RecommendConfig(bm25=Bm25Config(threads=threads))
    first_stage = open_hybrid(data.index, retrieval, log)
    forbidden = data.pairs()
    depth = MINE_TO + int(data.cited.lengths.max()) + 1
    sets = candidate_sets(data, first_stage, depth, progress)
    return Lists.each(
        [
            found.hits.rows[~forbidden.holds(row, found.hits.rows)][
                MINE_FROM - 1 : MINE_TO
            ]
            for row, found in zip(data.queries, sets, strict=True)
        ]
    )


def draw_examples(
    data: TrainingData, hard: Lists, config: EncoderTraining
) -> tuple[TrainingData, Rows]:
    """Draw the examples: a query, one of its positives, and negatives, as rows; the same for the same settings.

    Triplets: `examples` of each query, `hard` of them with a hard negative; positives may repeat. In-batch: at most
    `examples` distinct positives of each query, with `hard` negatives each.

    Args:
        data: The train queries.
        hard: The hard negatives of each query, none of them a reference of the query or itself.
        config: The settings.

    Returns:
        The data of the queries that have a positive and a possible negative, and their examples, shape (examples, 2 +
        negatives).
    """
    allowed = np.flatnonzero(data.allowed).astype(np.int32)
    excluded = data.cited.where(data.allowed[data.cited.indices]).lengths
    chosen = np.flatnonzero((data.gold.lengths > 0) & (excluded < len(allowed) - 1))
    if not len(chosen):
        raise ConfigError(
            f"no train query of {data.index.path} has a positive and a negative; use a larger corpus"
        )
    data = data.only(chosen)
    hard = hard.at(chosen)
    forbidden = data.pairs()
    rng = np.random.default_rng([config.seed, 0])
    count = config.examples
    triplets = config.recipe == "specter"
    positives = data.gold.drawn(count, rng, repeat=triplets)
    if triplets:
        negatives = np.full_like(positives, MISSING)
        negatives[:, : config.hard] = hard.drawn(config.hard, rng, repeat=False)
    else:
        negatives = hard.drawn(count * config.hard, rng, repeat=False)
    filled = positives.ravel() != MISSING
    queries = np.repeat(data.queries, count)[filled]
    negatives = negatives.reshape(len(filled), 1 if triplets else config.hard)[filled]
    rows, columns = np.nonzero(negatives == MISSING)
    while len(rows):  # random allowed papers; forbidden ones are drawn again
        drawn = rng.choice(allowed, len(rows))
        bad = forbidden.holds(queries[rows], drawn)
        negatives[rows[~bad], columns[~bad]] = drawn[~bad]
        rows = rows[bad]
        columns = columns[bad]
    return data, np.column_stack([queries, positives.ravel()[filled], negatives])


@dataclass(frozen=True)
class EncoderDev:
    """Dev queries and their candidate papers."""

    queries: tuple[Query, ...]
    papers: tuple[Paper, ...]  # the candidates of all queries
    allowed: Flags  # eligible papers, shape (queries, papers)
    gold: Flags  # cited papers, same shape

    @classmethod
    def load(cls, index: IndexFolder, config: EncoderTraining) -> "EncoderDev | None":
        """Draw dev queries and their candidate papers; None if there are none or `dev_queries` is 0.

        The candidates are all papers that the queries cite, and random eligible ones up to `dev_pool`.
        """
        drawn = dev_queries(index, config.dev_queries, config.seed)
        if drawn is None:
            return None
        years = index.papers.years
        rows = np.arange(len(index.papers), dtype=np.int32)
        gold = np.unique(np.concatenate(drawn.gold))
        bounds = [rule.year_max for rule in drawn.eligible if rule.year_max is not None]
        latest = max(bounds) if len(bounds) == len(drawn) else None
        others = np.setdiff1d(rows[within(Eligibility(latest), years, rows)], gold)
        more = min(max(config.dev_pool - len(gold), 0), len(others))
        rng = np.random.default_rng([config.seed, 3])
        rows = np.union1d(gold, rng.choice(others, more, replace=False)).astype(
            np.int32
        )
        papers = index.papers.at(rows.tolist())
        return cls(
            tuple(drawn.queries),
            tuple(papers[row] for row in rows.tolist()),
            np.stack([within(eligible, years, rows) for eligible in drawn.eligible]),
            np.stack([np.isin(rows, cited) for cited in drawn.gold]),
        )

    def measures(self, encoder: Encoder) -> dict[str, float]:
        """Return MRR and F1 at 20 of an encoder."""
        vectors = encoder.encode([*self.queries, *self.papers])
        papers = vectors[len(self.queries) :]
        scores = np.stack(
            [
                similarities(query, papers, encoder.spec.similarity)
                for query in vectors[: len(self.queries)]
            ]
        )
        scores[~self.allowed] = -np.inf
        return dev_measures(
            (row, cited, int(cited.sum()))
            for row, cited in zip(scores, self.gold, strict=True)
        )


@dataclass(frozen=True)
class _Net:
    """The model that is trained, as sentence-transformers has it, and as citerec reads it."""

    model: Any  # a SentenceTransformer
    parts: Parts  # of the same weights
    fingerprint: Fingerprint
    base: Mapping[str, Any]  # the weights of the base model, by name
    config: EncoderTraining

    @classmethod
    def of(cls, source: ModelSource, config: EncoderTraining) -> "_Net":
        """Open the base model.

        The trained model reads and pools as SPECTER by its recipe, else as the base model; one without a specification
        (plain BERT) gets mean pooling and cosine similarity.
        """
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Normalize, Transformer
        from sentence_transformers.sentence_transformer.modules import Pooling as Pool

        spec = EncoderSpec()
        if config.recipe == "strong":
            if any((source.folder / name).is_file() for name in (SPEC, "modules.json")):
                spec = read_spec(source.folder)
            else:
                spec = EncoderSpec(pooling=Pooling.MEAN, similarity=Similarity.COSINE)
        form = config.form or spec.form
        tokens = config.max_tokens or spec.max_tokens
        spec = replace(spec, form=form, max_tokens=tokens)
        parts = load_parts(source.folder, spec)
        local = {"local_files_only": True}
        reader: Any = Transformer(
            str(source.folder),
            model_kwargs={**local, "dtype": "float32"},
            processor_kwargs=local,
            config_kwargs=local,
        )
        reader.max_seq_length = min(
            config.train_tokens or spec.max_tokens, spec.max_tokens
        )
        cosine = spec.similarity is Similarity.COSINE
        pooling = spec.pooling.value
        pool: Any = Pool(parts.dim, pooling)  # pyright: ignore[reportArgumentType]
        model = SentenceTransformer(
            modules=[reader, pool, *([Normalize()] if cosine else [])],
            device="cpu" if config.device == "cpu" else None,
            local_files_only=True,  # otherwise each save asks the hub for the base model's card
            similarity_fn_name="cosine" if cosine else "euclidean",
        )
        for name, weights in reader.model.named_parameters():
            if name.startswith("pooler."):  # no vector depends on it
                weights.requires_grad_(False)
        own = replace(parts, model=reader.model, tokenizer=reader.tokenizer)
        base = {
            name: weights.detach().cpu().clone()
            for name, weights in reader.model.named_parameters()
        }
        fingerprint = fingerprint_of(source, parts.dim, spec)
        return cls(model, own, fingerprint, base, config)

    def frozen(self) -> Encoder:
        """Return an encoder with a copy of the current weights, which further training does not change."""
        parts = replace(
            self.parts, model=self._averaged(copy.deepcopy(self.parts.model).cpu())
        )
        return TransformerEncoder(parts, self.fingerprint, self.config.running)

    def _averaged(self, model: Any) -> Any:
        """Move the weights of a model towards those of the base model, by `base_share`; return it.

        What the base model knew of other papers is then kept: Wortsman et al. 2022, https://arxiv.org/abs/2109.01903.
        """
        for name, weights in model.named_parameters():
            weights.data.lerp_(self.base[name], self.config.base_share)
        return model

    def save(self, folder: Path) -> Json:
        """Write the model, which transformers, sentence-transformers and citerec open; return what its card shows."""
        spec = self.parts.spec
        # otherwise the local path of the base model
        self.parts.model.config._name_or_path = ""
        self.model.max_seq_length = spec.max_tokens
        self.model.cpu()
        self._averaged(self.parts.model)
        self.model.save_pretrained(str(folder), create_model_card=False)
        write_spec(folder, spec)
        return {"spec": spec, "dim": self.parts.dim, "separator": self.parts.separator}


def train_encoder(
    index: IndexFolder,
    output: Path | None,
    config: EncoderTraining,
    *,
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> trainer.TrainingReport:
    """Train an encoder on the citations of an index; the model folder is created complete at the end.

    Args:
        index: Its train queries are the training data; its dev queries select the weights.
        output: The model folder to create. If None, `models/encoder` of the index, or `models/encoder-new` if the model
            is not better on dev than its base.
        config: The settings.
        resume: Continue an interrupted training, from its last checkpoint next to the model folder.
        force: Replace an existing model.
        progress: Receives task, done and total of each kind of work.
        log: Receives a line for each evaluation.

    Raises:
        ConfigError: If there is nothing to train on, or the interrupted training had other settings.
        ModelError: If the base model cannot be opened.
        ModelExistsError: If there is a model at `output` and `force` is false.
        MissingExtraError: If a package of the extra `train` is not installed.
        OutputError: If the folders cannot be written.
    """
    target = trainer.target_of(output, index, NAME, SPEC, force=force)
    data, source = trainer.prepare(config, index, log)
    net = _Net.of(source, config)
    dev = EncoderDev.load(index, config)
    plan = trainer.plan_of(config, index)
    state = trainer.TrainingState(target)

    def hard() -> trainer.Arrays:
        if not config.hard:
            return asdict(Lists.each([data.queries[:0]] * len(data.queries)))
        if config.recipe == "specter":
            return asdict(cited_by_cited(data, seed=config.seed))
        return asdict(mined(data, threads=config.threads, progress=progress, log=log))

    with state.open(plan, resume=resume, log=log):
        lists = Lists(**trainer.cached_arrays(state.folder, "hard", hard))
        used, drawn = draw_examples(data, lists, config)
        loop = _trainer(net, index.papers, drawn, dev, state.folder)
        before = dev.measures(net.frozen()) if dev else {}
        history, best = trainer.train(
            loop, state, before, resume=resume, progress=progress, log=log
        )
        is_better = bool(dev) and best.dev[config.metric] > before[config.metric]
        counts = {
            "papers": data.papers,
            "train_queries": len(used.queries),
            "positives": len(used.gold.indices),
            "examples_an_epoch": len(drawn),
        }
        facts = {"plan": plan, "counts": counts}
        return trainer.finish(
            output or trainer.own_folder(target, is_better=is_better),
            (history, best),
            config,
            index,
            source,
            facts,
            net.save,
            "encoder.md",
            is_better=is_better,
        )


def _trainer(
    net: _Net,
    papers: Papers,
    drawn: Rows,
    dev: EncoderDev | None,
    folder: Path,
) -> Any:
    """Return the Trainer: its dataset holds rows, which the collator turns into texts."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        util,
    )
    from sentence_transformers.base.evaluation import BaseEvaluator
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.data_collator import (
        SentenceTransformerDataCollator,
    )

    config = net.config
    spec = net.parts.spec

    class Collator(SentenceTransformerDataCollator):
        def __call__(self, features: list[dict[str, int]]) -> dict[str, Any]:
            read = papers.at(row for example in features for row in example.values())
            texts: dict[int, str] = {}
            for row, paper in read.items():
                text = encoder_text(paper, spec.form, net.parts.separator)
                # unpaired surrogates
                texts[row] = text.encode(errors="replace").decode()
            return super().__call__(
                [
                    {name: texts[row] for name, row in example.items()}
                    for example in features
                ]
            )

    class Evaluator(BaseEvaluator):
        primary_metric = config.metric
        greater_is_better = True

        def __call__(self, *_: object, **__: object) -> dict[str, float]:
            return dev.measures(net.frozen()) if dev else {}

    class EncoderTrainer(SentenceTransformerTrainer):
        def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
            """Add none: the card is ours."""

    arguments = trainer.arguments_of(
        SentenceTransformerTrainingArguments, config, folder, has_dev=bool(dev)
    )
    at_once = trainer.tokens_at_once(net.parts.model, arguments)
    # max(|q - p| - |q - n| + margin, 0); Cohan et al. 2020, equation 2
    loss: Any = losses.TripletLoss(net.model, triplet_margin=MARGIN)
    if config.recipe == "specter":  # triplets need no others of their batch
        per_device = arguments.per_device_train_batch_size
        fitting = max(at_once // (drawn.shape[1] * net.model.max_seq_length), 1)
        size = max(
            n for n in range(1, min(per_device, fitting) + 1) if per_device % n == 0
        )
        arguments.per_device_train_batch_size = size
        arguments.gradient_accumulation_steps = per_device // size
    else:
        compare = (
            util.euclidean_sim if spec.similarity is Similarity.L2 else util.dot_score
        )
        scale = 1 / TEMPERATURE
        loss = losses.MultipleNegativesRankingLoss(
            net.model, scale, similarity_fct=compare
        )
        # a paper that is twice in a batch would be a negative of its own query
        arguments.batch_sampler = "no_duplicates"
        arguments.dataloader_drop_last = len(drawn) > config.batch
    names = ["query", "positive", *(f"negative_{i}" for i in range(drawn.shape[1] - 2))]
    return EncoderTrainer(
        model=net.model,
        args=arguments,
        train_dataset=Dataset.from_dict(dict(zip(names, drawn.T, strict=True))),
        loss=loss,
        evaluator=Evaluator() if dev else None,
        data_collator=Collator(net.model.preprocess),
    )
