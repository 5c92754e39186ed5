"""Trains an encoder on the citations of an index: examples, dev measures, SentenceTransformerTrainer, model folder."""

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.encode.encoder import Encoder, TransformerEncoder, Vectors
from citerec.encode.model import Parts, load_parts
from citerec.encode.opening import fingerprint_of
from citerec.encode.source import ModelSource
from citerec.encode.spec import NAME as SPEC
from citerec.encode.spec import (
    EncoderSpec,
    Fingerprint,
    Pooling,
    Reads,
    Separator,
    Similarity,
    read_spec,
    write_spec,
)
from citerec.errors import ConfigError, writing
from citerec.folder import IndexFolder
from citerec.io import building
from citerec.rules.known import within
from citerec.text import encoder_text
from citerec.train.data import DevQueries, TrainingData, load_training_data
from citerec.train.lists import Flags, Lists, Pairs, Rows
from citerec.train.measures import f1_and_reciprocal_rank
from citerec.train.mine import cited_by_cited, mined, similarities
from citerec.train.record import (
    base_facts,
    check_target,
    corpus_facts,
    data_section,
    find_base,
    finish_folder,
    has_weights,
    model_card,
    read_training,
    table,
    training_record,
)
from citerec.train.record import was_trained_so as has_record
from citerec.train.settings import EncoderLoss, EncoderNegatives, EncoderTraining
from citerec.train.trainer import (
    TrainingReport,
    Workspace,
    arguments_of,
    first_process_first,
    history_json,
    is_first,
    prepare,
    train,
)
from citerec.types import Log, Paper, Progress, Query, no_progress

CACHED = 500_000  # papers whose texts are cached
MISSING = -1  # marks a negative that is still to be drawn


@dataclass(frozen=True)
class EncoderExamples:
    """Draws the examples: a query, one of its positives, and negatives, as rows."""

    data: TrainingData
    config: EncoderTraining
    hard: Lists  # hard negatives of each query
    forbidden: Pairs  # (query, paper) that are never negatives

    @classmethod
    def of(cls, data: TrainingData, config: EncoderTraining, hard: Lists) -> "EncoderExamples":
        """Make examples of the queries that have a positive and a possible negative.

        Raises:
            ConfigError: If there is no such query.
        """
        pool = int(data.pool.sum())
        excluded = data.cited.where(data.pool[data.cited.indices]).lengths + data.gold.lengths
        chosen = np.flatnonzero((data.gold.lengths > 0) & (excluded < pool - 1))
        if not len(chosen):
            raise ConfigError(
                f"no train query of {data.index.path} has a positive and a negative; use a larger corpus"
            )
        data, hard = data.only(chosen), hard.at(chosen)
        forbidden = data.forbidden(data.gold)
        hard = hard.where(~forbidden.holds(data.queries[hard.segment_ids], hard.indices))
        return cls(data, config, hard, forbidden)

    def drawn(self) -> Rows:
        """Return the examples, shape (examples, 2 + negatives); the same for the same settings."""
        rng = np.random.default_rng([self.config.seed, 0])
        triplets = self.config.loss is EncoderLoss.TRIPLET
        return self._triplets(rng) if triplets else self._pairs(rng)

    def _triplets(self, rng: np.random.Generator) -> Rows:
        """Draw `examples` triplets of each query, `hard` of them with a hard negative; positives may repeat."""
        count = self.config.examples
        positives = self.data.gold.drawn(count, rng, repeat=True)
        negatives = np.full_like(positives, MISSING)
        negatives[:, : self.config.hard] = self.hard.drawn(self.config.hard, rng, repeat=False)
        queries = np.repeat(self.data.queries, count)
        negatives = self._completed(queries, negatives.reshape(-1, 1), rng)
        return np.column_stack([queries, positives.ravel(), negatives])

    def _pairs(self, rng: np.random.Generator) -> Rows:
        """Draw at most `examples` distinct positives of each query, with `hard` negatives each."""
        count, hard = self.config.examples, self.config.hard
        positives = self.data.gold.drawn(count, rng, repeat=False)
        negatives = self.hard.drawn(count * hard, rng, repeat=False)
        filled = positives.ravel() != MISSING
        queries = np.repeat(self.data.queries, count)[filled]
        negatives = self._completed(queries, negatives.reshape(len(filled), hard)[filled], rng)
        return np.column_stack([queries, positives.ravel()[filled], negatives])

    def _completed(self, queries: Rows, negatives: Rows, rng: np.random.Generator) -> Rows:
        """Replace missing negatives by random papers of the pool; forbidden ones are drawn again."""
        papers = np.flatnonzero(self.data.pool).astype(np.int32)
        rows, columns = np.nonzero(negatives == MISSING)
        while len(rows):
            drawn = rng.choice(papers, len(rows))
            bad = self.forbidden.holds(queries[rows], drawn)
            negatives[rows[~bad], columns[~bad]] = drawn[~bad]
            rows, columns = rows[bad], columns[bad]
        return negatives


@dataclass(frozen=True)
class EncoderDev:
    """Dev queries and their candidate papers."""

    queries: tuple[Query, ...]
    papers: tuple[Paper, ...]  # the candidates of all queries
    allowed: Flags  # eligible papers, shape (queries, papers)
    gold: Flags  # cited papers, same shape


def load_dev(index: IndexFolder, config: EncoderTraining) -> EncoderDev | None:
    """Draw dev queries and their candidate papers; None if there are none or `dev_queries` is 0.

    The candidates are all papers that the queries cite, and random eligible ones up to `dev_pool`.
    """
    rng = np.random.default_rng([config.seed, 3])
    drawn = DevQueries.drawn(index, config.dev_queries, rng)
    if drawn is None:
        return None
    gold = np.unique(np.concatenate(drawn.gold))
    rows = np.arange(len(index.papers), dtype=np.int32)
    bounds = [eligible.year_max for eligible in drawn.eligible]
    known = [bound for bound in bounds if bound is not None]
    if len(known) == len(bounds):
        rows = rows[index.papers.years <= max(known)]
    others = np.setdiff1d(rows, gold)
    more = min(max(config.dev_pool - len(gold), 0), len(others))
    rows = np.union1d(gold, rng.choice(others, more, replace=False)).astype(np.int32)
    years, papers = index.papers.years, index.papers.at(rows.tolist())
    return EncoderDev(
        drawn.queries,
        tuple(papers[row] for row in rows.tolist()),
        np.stack([within(eligible, years, rows) for eligible in drawn.eligible]),
        np.stack([np.isin(rows, cited) for cited in drawn.gold]),
    )


def measure(dev: EncoderDev, encoder: Encoder) -> dict[str, float]:
    """Return MRR and F1 at 20 of an encoder on the dev queries."""
    vectors = encoder.encode([*dev.queries, *dev.papers])
    queries, papers = vectors[: len(dev.queries)], vectors[len(dev.queries) :]
    scores = similarities(encoder.spec.similarity, queries, papers)
    scores[~dev.allowed] = -np.inf
    f1, mrr = mean_f1_and_mrr(scores, dev.gold)
    return {"mrr": mrr, "f1": f1}


def mean_f1_and_mrr(scores: Vectors, gold: Flags) -> tuple[float, float]:
    """Return the means over the queries of F1 at 20 and of 1 / rank of the first cited paper.

    Args:
        scores: Shape (queries, papers); higher is better.
        gold: Cited papers, same shape; each query has at least one.
    """
    measured = [
        f1_and_reciprocal_rank(row, flags, int(flags.sum()))
        for row, flags in zip(scores, gold, strict=True)
    ]
    f1, reciprocal_ranks = zip(*measured, strict=True)
    return float(np.mean(f1)), float(np.mean(reciprocal_ranks))


@dataclass(frozen=True)
class _Net:
    """The model that is trained, as sentence-transformers has it, and as citerec reads it."""

    model: Any  # a SentenceTransformer
    parts: Parts  # of the same weights
    fingerprint: Fingerprint

    @classmethod
    def of(cls, source: ModelSource, spec: EncoderSpec, config: EncoderTraining) -> "_Net":
        """Open the base model.

        Raises:
            ModelError: If it cannot be opened.
        """
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Normalize, Transformer
        from sentence_transformers.sentence_transformer.modules import Pooling as Pool

        parts = load_parts(source.folder, spec)
        reader: Any = Transformer(
            str(source.folder),
            model_kwargs={"local_files_only": True, "dtype": "float32"},
            processor_kwargs={"local_files_only": True},
            config_kwargs={"local_files_only": True},
        )
        reader.max_seq_length = min(config.train_tokens or spec.max_tokens, spec.max_tokens)
        cosine = spec.similarity is Similarity.COSINE
        pooling: Any = spec.pooling.value
        modules: list[Any] = [reader, Pool(parts.dim, pooling), *([Normalize()] if cosine else [])]
        named = "cosine" if cosine else "euclidean"
        model = SentenceTransformer(
            modules=modules,
            device="cpu" if config.device == "cpu" else None,
            similarity_fn_name=named,
        )
        for name, weights in reader.model.named_parameters():
            if name.startswith("pooler."):  # no vector depends on it
                weights.requires_grad_(False)
        own = Parts(reader.model, reader.tokenizer, spec)
        return cls(model, own, fingerprint_of(source, parts))

    def frozen(self, config: EncoderTraining) -> Encoder:
        """Return an encoder with a copy of the current weights, which further training does not change."""
        model = copy.deepcopy(self.parts.model).cpu()
        return TransformerEncoder(
            Parts(model, self.parts.tokenizer, self.parts.spec), self.fingerprint, config.running
        )


def train_encoder(
    index: IndexFolder,
    output: Path,
    config: EncoderTraining,
    *,
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
) -> TrainingReport:
    """Train an encoder on the citations of an index; the model folder is created complete at the end.

    Args:
        index: Its train queries are the training data; its dev queries select the weights.
        output: The model folder to create.
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
    check_target(output, SPEC, force=force)
    prepare(config)
    data = load_training_data(index).sampled(config.queries, config.seed)
    source = find_base(config.model, index, log)
    net = _Net.of(source, trained_spec(source.folder, config), config)
    dev = load_dev(index, config)
    models = {"weights": net.fingerprint.weights, "tokenizer": net.fingerprint.tokenizer}
    workspace = Workspace.for_model(output)
    plan = config.to_json() | corpus_facts(index) | models
    with workspace.open(plan, resume=resume, log=log):
        with first_process_first():
            hard = workspace.kept("hard", lambda: _hard(data, net, config, progress))
        examples = EncoderExamples.of(data, config, Lists(hard["indptr"], hard["indices"]))
        drawn = examples.drawn()
        trainer = _trainer(net, examples, drawn, dev, workspace.folder)
        before = measure(dev, net.frozen(config)) if dev else {}
        history, best = train(trainer, workspace, before, resume=resume, progress=progress, log=log)
        counts = {
            "papers": data.papers,
            "train_queries": len(examples.data.queries),
            "positives": len(examples.data.gold.indices),
            "examples_an_epoch": len(drawn),
        }
        facts = base_facts(source, net.fingerprint.weights, index)
        facts |= {"counts": counts, "tokenizer": net.fingerprint.tokenizer}
        facts |= {"history": history_json(history), "best_step": best.step}
        settings = config.to_json() | {"model": facts["base"]}
        if is_first():
            with writing(output), building(output) as folder:
                record = training_record(facts, settings)
                _write(net, folder, record)
    return TrainingReport(
        output=output,
        queries=counts["train_queries"],
        examples=len(drawn),
        before=before,
        after=best.dev,
        history=history,
        step=best.step,
    )


def was_trained_so(model: Path, index: IndexFolder, config: EncoderTraining) -> bool:
    """Return whether a model was trained on these papers and splits, from this base, with these settings."""
    same = has_record(model, config.to_json(), corpus_facts(index))
    return same and has_weights(config.model, index, read_training(model).get("weights"))


def trained_spec(folder: Path, config: EncoderTraining) -> EncoderSpec:
    """Return how the trained model reads and pools: as the base model, unless the settings differ.

    A base model without a specification (plain BERT) gets mean pooling and cosine similarity.
    """
    has_spec = any((folder / name).is_file() for name in (SPEC, "modules.json"))
    plain = EncoderSpec(pooling=Pooling.MEAN, similarity=Similarity.COSINE)
    spec = read_spec(folder) if has_spec else plain
    settings = {
        "pooling": config.pooling,
        "similarity": config.similarity,
        "separator": config.separator,
        "form": config.form,
        "max_tokens": config.max_tokens or None,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    return replace(spec, reads=Reads.WHOLE, **given)


def _hard(
    data: TrainingData, net: _Net, config: EncoderTraining, progress: Progress
) -> Mapping[str, npt.NDArray[Any]]:
    """Return the hard negatives of each query, as the arrays of `Lists`."""
    if not config.hard:
        none = Lists.of(np.zeros(0, np.int64), np.zeros(0, np.int32), len(data.queries))
        return asdict(none)
    if config.negatives is EncoderNegatives.CITATIONS:
        return asdict(cited_by_cited(data, seed=config.seed))
    encoder = net.frozen(config)
    return asdict(mined(data, encoder, threads=config.threads, progress=progress))


def _trainer(
    net: _Net, examples: EncoderExamples, drawn: Rows, dev: EncoderDev | None, folder: Path
) -> Any:
    """Return the Trainer: its dataset holds rows, which the collator turns into texts."""
    import torch
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.base.evaluation import BaseEvaluator
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.data_collator import (
        SentenceTransformerDataCollator,
    )

    config, spec, papers = examples.config, net.parts.spec, examples.data.index.papers
    cache: dict[int, str] = {}

    class Collator(SentenceTransformerDataCollator):
        def __call__(self, features: list[dict[str, int]]) -> dict[str, Any]:
            rows = {row for one in features for row in one.values()}
            if len(cache) > CACHED:
                cache.clear()
            for row, paper in papers.at(sorted(rows - cache.keys())).items():
                text = encoder_text(paper, spec.form, net.parts.separator)
                cache[row] = text.encode(errors="replace").decode()  # unpaired surrogates
            texts = [{name: cache[row] for name, row in one.items()} for one in features]
            return super().__call__(texts)

    class Triplet(losses.TripletLoss):
        """max(|q - p| - |q - n| + margin, 0); Cohan et al. 2020, equation 2. Its square root is safe at 0."""

        def compute_loss_from_embeddings(self, embeddings: list[Any], labels: Any) -> Any:
            return torch.nn.functional.triplet_margin_loss(*embeddings, margin=config.margin)

    class Evaluator(BaseEvaluator):
        primary_metric = str(config.selection_metric)
        greater_is_better = True

        def __call__(self, *_: object, **__: object) -> dict[str, float]:
            return measure(dev, net.frozen(config)) if dev else {}

    class EncoderTrainer(SentenceTransformerTrainer):
        def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
            """Add none: the card is ours."""

    in_batch = config.loss is EncoderLoss.IN_BATCH
    metric = str(config.selection_metric) if dev else None
    arguments = arguments_of(
        SentenceTransformerTrainingArguments, config, folder, len(drawn), metric
    )
    if in_batch:  # a paper that is twice in a batch would be a negative of its own query
        arguments.batch_sampler = "no_duplicates"
        arguments.dataloader_drop_last = len(drawn) > config.batch
    names = ["query", "positive", *(f"negative_{i}" for i in range(drawn.shape[1] - 2))]
    euclidean = spec.similarity is Similarity.L2
    loss = (
        losses.MultipleNegativesRankingLoss(
            net.model,
            scale=1 / config.temperature,
            similarity_fct=_euclidean if euclidean else _products,
        )
        if in_batch
        else Triplet(net.model)
    )
    return EncoderTrainer(
        model=net.model,
        args=arguments,
        train_dataset=Dataset.from_dict(dict(zip(names, drawn.T, strict=True))),
        loss=loss,
        evaluator=Evaluator() if dev else None,
        data_collator=Collator(net.model.preprocess),
    )


def _products(queries: Any, papers: Any) -> Any:
    return queries @ papers.T


def _euclidean(queries: Any, papers: Any) -> Any:
    """Return minus the distances; their square root has no derivative at 0."""
    norms = queries.pow(2).sum(-1)[:, None] + papers.pow(2).sum(-1)[None, :]
    return -((norms - 2 * queries @ papers.T).clamp(min=0) + 1e-12).sqrt()


def _write(net: _Net, folder: Path, record: Mapping[str, Any]) -> None:
    """Write the model, which transformers, sentence-transformers and citerec open, with its record and card."""
    model, spec = net.model, net.parts.spec
    net.parts.model.config._name_or_path = ""  # otherwise the local path of the base model
    model.max_seq_length = spec.max_tokens
    model.cpu().save_pretrained(str(folder), create_model_card=False)
    write_spec(folder, spec)
    finish_folder(folder, record, _card(net.parts, record))


def _card(parts: Parts, record: Mapping[str, Any]) -> str:
    spec, separator = parts.spec, f'"{parts.tokenizer.sep_token}"'
    by_token = spec.separator is Separator.TOKEN
    rows = [
        (str(p["step"]), p["loss"], p["dev"].get("mrr"), p["dev"].get("f1"))
        for p in record["history"]
    ]
    return model_card(
        f"An encoder of papers, trained on the citations of {record['index']}",
        f"It maps title and abstract to a vector of {parts.dim} numbers; papers that cite each other have similar "
        "vectors.",
        {
            "Use": f"""\
With citerec: `citerec index CORPUS --encoder FOLDER`, or `citerec encode --index DIR --encoder FOLDER`.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("FOLDER")
vectors = model.encode([title + {separator if by_token else '" "'} + abstract])
```

The input of a paper is {spec.form}, with {separator if by_token else "a space"} between the parts,
at most {spec.max_tokens} tokens; pooling: {spec.pooling}; similarity: {spec.similarity}.""",
            "Data": data_section(record),
            "Measures": "On a sample of the dev queries, before the training (0) and after so many updates; the weights"
            f" are those of update {record['best_step']}.\n\n"
            + table(("update", "loss", "dev MRR", "dev F1@20"), rows),
        },
        record["provenance"]["settings"],
        base=record["base"],
        hub=("sentence-similarity", "feature-extraction"),
    )
