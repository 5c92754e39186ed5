"""Trains a cross-encoder on the citations of an index: examples, dev measures, Trainer, calibration, model folder."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.encode.batching import batches, padded, token_types
from citerec.encode.model import (
    check_positions,
    open_folder,
    refuse_missing,
    tokenizer_files,
    weights_files,
)
from citerec.errors import ConfigError, ModelError, writing
from citerec.folder import IndexFolder
from citerec.io import building, sha256_of_files
from citerec.rerank.model import EXPANDER, KIND, RerankerParts
from citerec.rerank.spec import NAME as SPEC
from citerec.rerank.spec import RerankerSpec, Specials, pair, write_reranker_spec
from citerec.text import pair_text
from citerec.train.candidates import CandidateFinder, CandidateLists, LabelledCandidates, labelled
from citerec.train.data import DevQueries, load_training_data
from citerec.train.lists import Flags, Lists
from citerec.train.measures import f1_and_reciprocal_rank, platt
from citerec.train.record import (
    base_facts,
    check_target,
    corpus_facts,
    data_section,
    encoder_folder,
    encoder_of,
    find_base,
    finish_folder,
    has_weights,
    model_card,
    read_training,
    table,
    training_record,
)
from citerec.train.record import was_trained_so as has_record
from citerec.train.settings import (
    NO_TEACHER,
    CandidateSource,
    RerankerLoss,
    RerankerTraining,
)
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
from citerec.types import Log, Progress, no_progress

MISSING = -1  # fills a list with too few negatives
CPU_TOKENS, GPU_TOKENS = 4096, 65_536  # per forward pass, of pairs of similar length
# where probabilities are small, the best weight is near 1
RERANK_WEIGHTS = np.linspace(0, 1, 21).round(2)

Numbers = npt.NDArray[np.floating]
Places = npt.NDArray[np.int32]  # numbers of entries of the candidate lists


@dataclass
class RerankerExamples:
    """The examples as a torch dataset, those of one epoch at a time: single candidates, or a positive and negatives."""

    labelled: LabelledCandidates
    config: RerankerTraining

    def __post_init__(self) -> None:
        self.begin(0)
        if not len(self) or not self.labelled.cited.any():
            raise ConfigError(
                f"the first {self.config.depth} candidates of the train queries of {self.labelled.data.index.path} "
                "contain no cited paper; raise depth"
            )

    def begin(self, epoch: int) -> None:
        """Draw the examples of an epoch, shape (examples, 1 + negatives): places of candidates.

        The first of a list is cited; `MISSING` fills a list with too few negatives.
        """
        if self.config.list_negatives:
            self.places = self._lists(np.random.default_rng([self.config.seed, epoch]))
        else:
            self.places = np.arange(len(self.labelled.cited), dtype=np.int32)[:, None]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, i: int) -> Places:
        return self.places[i]

    @cached_property
    def _positives(self) -> Lists:
        """The cited candidates of each query; none for a query without a negative."""
        of = self.labelled.candidates.lists.segment_ids
        return self._of(self.labelled.cited & (self._negatives.lengths > 0)[of])

    @cached_property
    def _negatives(self) -> Lists:
        return self._of(self.labelled.usable)

    def _of(self, flagged: Flags) -> Lists:
        places = np.flatnonzero(flagged)
        of = self.labelled.candidates.lists.segment_ids[places]
        return Lists.of(of, places, len(self.labelled.data.queries))

    def _lists(self, rng: np.random.Generator) -> Places:
        count, most = self.config.list_negatives, self.config.examples or np.iinfo(np.int64).max
        lists = [np.zeros((0, 1 + count), np.int32)]
        for query in np.flatnonzero(self._positives.lengths).tolist():
            negatives = self._negatives[query]
            for positive in rng.permutation(self._positives[query])[:most]:
                one = np.full((1, 1 + count), MISSING, np.int32)
                one[0, 0] = positive
                drawn = rng.choice(negatives, min(count, len(negatives)), replace=False)
                one[0, 1 : 1 + len(drawn)] = drawn
                lists.append(one)
        return np.concatenate(lists)


class PairReader:
    """Turns pairs of a draft and a paper into inputs of the model, in chunks of similar length."""

    def __init__(self, parts: RerankerParts, index: IndexFolder) -> None:
        self.parts, self._index = parts, index
        self._tokens: dict[int, list[int]] = {}

    def of_rows(self, rows: Sequence[int]) -> list[list[int]]:
        """Return the tokens of the papers at some rows."""
        unknown = sorted({*rows} - self._tokens.keys())
        papers = self._index.papers.at(unknown)
        texts = [pair_text(papers[row]) for row in unknown]
        self._tokens.update(zip(unknown, self.parts.cut(texts), strict=True))
        return [self._tokens[row] for row in rows]

    def chunks(
        self, queries: Sequence[list[int]], papers: Sequence[list[int]], budget: int
    ) -> tuple[list[dict[str, Any]], npt.NDArray[np.int64]]:
        """Return inputs of at most `budget` tokens with padding, and the place of each pair in their order."""
        import torch

        parts = self.parts
        both = zip(queries, papers, strict=True)
        pairs = [pair(q, p, parts.specials, parts.spec) for q, p in both]
        groups = batches([len(ids) for ids, _ in pairs], budget)
        places = np.empty(len(pairs), np.int64)
        places[np.concatenate([np.array(group) for group in groups])] = np.arange(len(pairs))
        chunks: list[dict[str, Any]] = []
        for group in groups:
            tokens = [pairs[i][0] for i in group]
            ids, mask = padded(tokens, parts.tokenizer.pad_token_id, parts.spec.tokens)
            arrays = {"input_ids": ids, "attention_mask": mask}
            if parts.typed:
                firsts = [pairs[i][1] for i in group]
                arrays["token_type_ids"] = token_types(tokens, firsts, ids.shape[1])
            chunks.append({name: torch.from_numpy(array) for name, array in arrays.items()})
        return chunks, places


@dataclass(frozen=True)
class RerankerDev:
    """Dev queries and their candidates."""

    queries: tuple[str, ...]  # the text of each
    candidates: CandidateLists
    cited: Flags  # of each candidate, shape (entries,)
    gold: npt.NDArray[np.int64]  # cited papers of each query, retrieved or not, shape (queries,)

    @classmethod
    def load(cls, index: IndexFolder, config: RerankerTraining, log: Log) -> "RerankerDev | None":
        """Draw dev queries and retrieve their candidates; None without dev queries."""
        rng = np.random.default_rng([config.seed, 3])
        drawn = DevQueries.drawn(index, config.dev_queries, rng)
        if drawn is None:
            return None
        finder = CandidateFinder(index, config, log)
        found = finder.find(drawn.queries, drawn.eligible, config.dev_depth)
        cited = [np.isin(found.lists[i], rows) for i, rows in enumerate(drawn.gold)]
        return cls(
            tuple(pair_text(query) for query in drawn.queries),
            found,
            np.concatenate(cited),
            np.array([len(rows) for rows in drawn.gold]),
        )

    def scores(self, reader: PairReader) -> npt.NDArray[np.float32]:
        """Return the logit of each candidate with the current weights, shape (entries,)."""
        import torch

        model, lists = reader.parts.model, self.candidates.lists
        queries = reader.parts.cut([*self.queries])
        chunks, places = reader.chunks(
            [queries[i] for i in lists.segment_ids.tolist()],
            reader.of_rows(lists.indices.tolist()),
            CPU_TOKENS if model.device.type == "cpu" else GPU_TOKENS,
        )
        trains = model.training
        model.eval()
        with torch.inference_mode():
            read = [
                model(**{name: array.to(model.device) for name, array in chunk.items()}).logits
                for chunk in chunks
            ]
        model.train(trains)
        logits = torch.cat(read)[:, 0].float().cpu().numpy()[places]
        if not np.isfinite(logits).all():
            raise ModelError("the training diverged: scores are not finite; lower learning_rate")
        return logits

    def measures(self, scores: Numbers) -> dict[str, float]:
        """Return `f1` and `mrr` of the order by some scores, and `mixed`, the f1 at the best rerank weight."""
        f1, mrr = self.ranked(scores)
        mixed = max(f1 for f1, _ in self.by_weight(scores, *platt(scores, self.cited)).values())
        return {"mrr": mrr, "f1": f1, "mixed": mixed}

    def first_stage(self) -> dict[str, float]:
        """Return the measures of the first-stage ranking."""
        f1, mrr = self.ranked(self.candidates.scores)
        return {"mrr": mrr, "f1": f1, "mixed": f1}

    def calibrated(self, spec: RerankerSpec, scores: Numbers, *, adds: bool) -> RerankerSpec:
        """Return a spec with the calibration of some scores of the candidates.

        If the model learned to add to the first-stage scores, `weight` is the rerank weight of the highest product of
        F1 at 20 and MRR, in which a percent of either counts the same.
        """
        scale, offset = platt(scores, self.cited)
        of_weights = self.by_weight(scores, scale, offset)
        best = max(of_weights, key=lambda weight: math.prod(of_weights[weight]))
        return replace(spec, scale=scale, offset=offset, weight=best if adds else spec.weight)

    def by_weight(
        self, scores: Numbers, scale: float, offset: float
    ) -> Mapping[float, tuple[float, float]]:
        """Return `ranked` of the probabilities interpolated with scaled first-stage scores, by rerank weight."""
        z = np.clip(scale * scores.astype(np.float64) + offset, -60, 60)
        probabilities, first = 1 / (1 + np.exp(-z)), np.zeros(len(scores))
        for start, end in self._slices():
            of_list = self.candidates.scores[start:end]
            if end > start:
                span = max(float(np.ptp(of_list)), 1e-9)
                first[start:end] = (of_list - of_list.min()) / span
        return {
            weight: self.ranked(weight * probabilities + (1 - weight) * first)
            for weight in RERANK_WEIGHTS.tolist()
        }

    def ranked(self, scores: Numbers) -> tuple[float, float]:
        """Return the means over the queries of F1 at 20 and of 1 / rank of the first cited paper."""
        measured = [
            f1_and_reciprocal_rank(scores[start:end], self.cited[start:end], gold)
            for (start, end), gold in zip(self._slices(), self.gold.tolist(), strict=True)
        ]
        f1, reciprocal_ranks = zip(*measured, strict=True)
        return float(np.mean(f1)), float(np.mean(reciprocal_ranks))

    def _slices(self) -> list[tuple[int, int]]:
        ends = self.candidates.lists.indptr.tolist()
        return [*pairwise(ends)]


def train_reranker(
    index: IndexFolder,
    output: Path,
    config: RerankerTraining,
    *,
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
) -> TrainingReport:
    """Train a cross-encoder on the citations of an index; the model folder is created complete at the end.

    Args:
        index: Its train queries are the training data; its dev queries select and calibrate the weights.
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
    parts = load_base(source.folder, config)
    weights = sha256_of_files(weights_files(source.folder))
    tokenizer = sha256_of_files(tokenizer_files(source.folder))
    models = {"weights": weights, "tokenizer": tokenizer, "encoder": _encoder(index, config)}
    workspace = Workspace.for_model(output)
    plan = config.to_json() | corpus_facts(index) | models
    with workspace.open(plan, resume=resume, log=log):
        with first_process_first():
            found = workspace.kept(
                "candidates",
                lambda: (
                    CandidateFinder(index, config, log).train(data, config.depth, progress).arrays
                ),
            )
        labels = labelled(data, CandidateLists.from_arrays(found), config)
        examples = RerankerExamples(labels, config)
        dev = RerankerDev.load(index, config, log)
        reader = PairReader(parts, index)
        trainer = _trainer(reader, examples, dev, workspace.folder)
        history, best = train(
            trainer,
            workspace,
            dev.first_stage() if dev else {},
            resume=resume,
            on_epoch=examples.begin,
            progress=progress,
            log=log,
        )
        counts = {
            "papers": data.papers,
            "train_queries": len(data.queries),
            "candidates": len(labels.cited),
            "cited_candidates": int(labels.cited.sum()),
            "examples_an_epoch": len(examples),
        }
        folder_of_encoder = encoder_folder(index) if config.teacher != NO_TEACHER else None
        teachers = [folder_of_encoder] if folder_of_encoder else []
        facts = base_facts(source, weights, index, teachers) | {"encoder": models["encoder"]}
        facts |= {"counts": counts, "history": history_json(history), "best_step": best.step}
        if is_first():
            if dev:
                adds, scores = config.first_stage_weight > 0, dev.scores(reader)
                parts = replace(parts, spec=dev.calibrated(parts.spec, scores, adds=adds))
            settings = config.to_json() | {"model": facts["base"]}
            with writing(output), building(output) as folder:
                _write(parts, folder, training_record(facts, settings))
    return TrainingReport(
        output=output,
        queries=len(data.queries),
        examples=len(examples),
        before=history[0].dev,
        after=best.dev,
        history=history,
        step=best.step,
    )


def was_trained_so(model: Path, index: IndexFolder, config: RerankerTraining) -> bool:
    """Return whether a model was trained on these papers, splits and vectors, from this base, with these settings."""
    facts = corpus_facts(index) | {"encoder": _encoder(index, config)}
    same = has_record(model, config.to_json(), facts)
    return same and has_weights(config.model, index, read_training(model).get("weights"))


def _encoder(index: IndexFolder, config: RerankerTraining) -> str | None:
    """Return the sha256 of the encoder whose vectors the training uses; None if it uses none."""
    fused = config.candidates is CandidateSource.FUSED
    return encoder_of(index) if fused or config.teacher != NO_TEACHER else None


def load_base(folder: Path, config: RerankerTraining) -> RerankerParts:
    """Open the base model: a cross-encoder with one label, or any BERT-like model, which gets a new head.

    Raises:
        ModelError: If it is no such model, or has too few positions.
        ConfigError: If `freeze_layers` exceeds its layers.
    """
    import torch
    from transformers import AutoModelForSequenceClassification

    spec = RerankerSpec(query_tokens=config.query_tokens, candidate_tokens=config.candidate_tokens)
    model, tokenizer, missing = open_folder(folder, KIND)
    prefix = f"{model.base_model_prefix}."
    refuse_missing(folder, [n for n in missing if n.startswith(prefix) and EXPANDER not in n])
    check_positions(folder, model, spec.tokens)
    try:
        specials = Specials.of(tokenizer)
    except ValueError as error:
        raise ModelError(f"{folder}: {error}") from error
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
    return RerankerParts(model, tokenizer, spec, specials)


def _trainer(
    reader: PairReader, examples: RerankerExamples, dev: RerankerDev | None, folder: Path
) -> Any:
    """Return the Trainer: the 256 + 256 tokens of a pair need a collator of its own."""
    import torch
    from transformers import Trainer, TrainingArguments

    config, labels = examples.config, examples.labelled
    query_rows, paper_rows = labels.query_rows, labels.candidates.lists.indices
    metric = str(config.selection_metric) if dev else None
    arguments = arguments_of(TrainingArguments, config, folder, len(examples), metric)
    budget = CPU_TOKENS if arguments.device.type == "cpu" else GPU_TOKENS

    def collated(drawn: Sequence[Places]) -> dict[str, Any]:
        places = np.stack(drawn)
        present = places != MISSING
        entries = places[present]
        queries = reader.of_rows(query_rows[entries].tolist())
        chunks, order = reader.chunks(queries, reader.of_rows(paper_rows[entries].tolist()), budget)
        at = np.zeros(places.shape, np.int64)
        at[present] = order
        arrays = {
            "at": at,
            "there": present,
            "cited": (labels.cited[places] & present).astype(np.float32),
            "teacher": labels.teacher[places],
            "first_stage": labels.first_stage[places],
        }
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
            measures = dev.measures(dev.scores(reader)) if dev else {}
            named = {f"eval_{name}": value for name, value in measures.items()}
            self.log(dict(named))
            self.control = self.callback_handler.on_evaluate(
                self.args, self.state, self.control, named
            )
            return named

    dataset: Any = examples
    return PairTrainer(
        reader.parts.model,
        arguments,
        data_collator=collated,
        train_dataset=dataset,
        eval_dataset=dataset,
    )


def loss_of(
    logits: Any, config: RerankerTraining, *, cited: Any, there: Any, teacher: Any, first_stage: Any
) -> Any:
    """Return the loss of each list, shape (lists,).

    Args:
        logits: Shape (lists, papers), as all others.
        config: Selects the loss.
        cited: 1 for a cited paper, else 0.
        there: Whether the place holds a paper.
        teacher: Teacher scores, standardised in each list.
        first_stage: First-stage scores, standardised in each list; added to the logits with `first_stage_weight`.
    """
    import torch

    far = -1e9  # the logit of an empty place
    total = logits + config.first_stage_weight * first_stage
    if config.loss is RerankerLoss.BCE:
        each = torch.nn.functional.binary_cross_entropy_with_logits(total, cited, reduction="none")
        loss = (each * there).sum(-1) / there.sum(-1).clamp(min=1)
    else:  # Cao et al., ICML 2007 (ListNet), https://doi.org/10.1145/1273496.1273513
        shares = torch.log_softmax(total.masked_fill(~there, far), -1)
        loss = -(shares * cited).sum(-1) / cited.sum(-1).clamp(min=1)
    if config.distill:  # KL(teacher || model) of each list
        target = torch.log_softmax(teacher.masked_fill(~there, far), -1)
        predicted = torch.log_softmax(logits.masked_fill(~there, far), -1)
        loss = loss + config.distill * (target.exp() * (target - predicted)).sum(-1)
    return loss


def _write(parts: RerankerParts, folder: Path, record: Mapping[str, Any]) -> None:
    """Write the model, which transformers, sentence-transformers and citerec open, with its record and card."""
    model = parts.model
    model.config._name_or_path = ""  # otherwise the local path of the base model
    # By default sentence-transformers applies a sigmoid to the score of a single label.
    model.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    model.save_pretrained(folder)
    parts.tokenizer.model_max_length = parts.spec.tokens
    parts.tokenizer.save_pretrained(folder)
    write_reranker_spec(folder, parts.spec)
    finish_folder(folder, record, _card(parts.spec, record))


def _card(spec: RerankerSpec, record: Mapping[str, Any]) -> str:
    rows = [
        (str(p["step"]), p["loss"], *(p["dev"].get(name) for name in ("mrr", "f1", "mixed")))
        for p in record["history"]
    ]
    weight = (
        f"\nIt learned to add to the first-stage scores: its rerank weight is {spec.weight:g}, the best on dev."
        if spec.weight != 1
        else ""
    )
    return model_card(
        f"A reranker of citations, trained on {record['index']}",
        "It reads a draft and a paper together; its score is high if the draft should cite the paper.",
        {
            "Use": f"""With citerec: `citerec recommend --query FILE --reranker FOLDER`.

```python
from sentence_transformers import CrossEncoder

model = CrossEncoder("FOLDER")
scores = model.predict([(draft_title + " " + draft_abstract, title + " " + abstract)])
```

citerec truncates each side separately: at most {spec.query_tokens} tokens of the query with [CLS] and [SEP],
{spec.candidate_tokens} of the candidate with its [SEP].
Libraries that truncate the pair as a whole give long pairs other scores.
The probability of a citation is sigmoid({spec.scale:.4g} * score + {spec.offset:.4g}), fitted on the dev queries.
{weight}""",
            "Data": data_section(record),
            "Measures": "On a sample of the dev queries: the first-stage ranking (0), and the ranking of the model"
            " after so many updates. Mixed is the F1@20 of the best interpolation of both. The weights are of update "
            f"{record['best_step']}.\n\n"
            + table(("update", "loss", "dev MRR", "dev F1@20", "mixed"), rows),
        },
        record["provenance"]["settings"],
        base=record["base"],
        hub=("text-ranking", "cross-encoder"),
    )
