"""Options of a command as a view of settings: a parameter that is a model becomes one option for each of its fields.

The model declares type, range, default and help text; the function of the command receives the checked model.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any, get_args, get_origin

import typer
from annotated_types import Ge, Le

from citerec.config import RecommendConfig, RerankConfig, Settings

# Models of which a command shows some fields, or under other names: the flag, and the fields that it sets.
FLAGS: Mapping[type[Settings], Mapping[str, tuple[str, ...]]] = {
    RecommendConfig: {
        "--k": ("k",),
        "--encoder": ("encoder",),
        "--fusion": ("fuse",),
        "--retriever": ("retrievers",),
        "--reranker": ("reranker.model",),
        "--rerank-depth": ("reranker.depth",),
        "--query-tokens": ("reranker.query_tokens",),
        "--candidate-tokens": ("reranker.candidate_tokens",),
        "--rerank-weight": ("reranker.weight",),
        "--device": ("reranker.device",),
        "--dtype": ("reranker.precision",),
        "--backend": ("reranker.backend",),
        "--ranker": ("ranker",),
        "--no-popularity": ("popularity",),
        "--no-authors": ("authors",),
        "--diversity": ("diversity",),
        "--query-form": ("bm25.form",),
        "--k1": ("bm25.k1",),
        "--b": ("bm25.b",),
        "--stop-words": ("bm25.stop_words",),
        "--threads": ("bm25.threads", "dense.threads", "reranker.threads"),
    },
}
_UNIONS: Mapping[str, type[Settings]] = {"reranker": RerankConfig}  # the model of a union of types


def settings_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its parameters that are settings.

    An option that is not given leaves the default of its field.
    """
    signature = inspect.signature(function, eval_str=True)
    options: dict[str, tuple[str, tuple[str, ...], bool]] = {}  # parameter, fields, turns off
    parameters: list[inspect.Parameter] = []
    models: dict[str, type[Settings]] = {}
    for name, parameter in signature.parameters.items():
        kind = parameter.annotation
        if not (isinstance(kind, type) and issubclass(kind, Settings)):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        models[name] = kind
        for flag, paths in _flags(kind):
            option, off = _option(kind, flag, paths[0])
            options[option.name] = (name, paths, off)
            parameters.append(option)

    @wraps(function)
    def command(**given: Any) -> None:
        values: dict[str, dict[str, Any]] = {name: {} for name in models}
        for option, value in [*given.items()]:
            if option in options:
                name, paths, off = options[option]
                del given[option]
                for path in paths if value not in (None, []) else ():
                    _set(values[name], path, not value if off else value)
        function(**given, **{name: kind(**values[name]) for name, kind in models.items()})

    command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    return command


def _flags(kind: type[Settings]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the flags of a model and the fields that each sets, in the order of the help."""
    if kind in FLAGS:
        yield from FLAGS[kind].items()
        return
    for name in kind.model_fields:
        yield f"--{name.replace('_', '-')}", (name,)


def _option(kind: type[Settings], flag: str, path: str) -> tuple[inspect.Parameter, bool]:
    """Return the option of a field as a parameter, and whether its flag turns the field off."""
    *tables, name = path.split(".")
    for table in tables:
        kind = _UNIONS.get(table) or kind.model_fields[table].annotation  # pyright: ignore[reportAssignmentType]
    field: Any = kind.model_fields[name]
    annotation = _leaf(field.annotation)
    bounds = {type(one): one for one in field.metadata}
    off = annotation is bool and field.default is True
    shown = field.default.value if isinstance(field.default, StrEnum) else field.default
    has_default = shown not in (None, "", (), False) and not off
    info = typer.Option(
        flag,
        *((f"-{flag[2]}",) if flag in ("--quiet", "--verbose") else ()),
        min=bounds[Ge].ge if Ge in bounds else None,
        max=bounds[Le].le if Le in bounds else None,
        help=_negated(field.description) if off else field.description,
        show_default=str(shown) if has_default else False,
    )
    return inspect.Parameter(
        flag.lstrip("-").replace("-", "_"),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[annotation | None, info],
    ), off


def _negated(description: str) -> str:
    return f"Do not {description[0].lower()}{description[1:]}"


def _leaf(annotation: Any) -> Any:
    """Return the type that one option takes: of a union the enum, else its first type."""
    if get_origin(annotation) is tuple:
        return list[get_args(annotation)[0]]
    members = [one for one in get_args(annotation) if one is not type(None)]
    if not members or get_origin(annotation) is list:
        return annotation
    enums = [one for one in members if isinstance(one, type) and issubclass(one, StrEnum)]
    return _leaf((enums or members)[0])


def _set(values: dict[str, Any], path: str, value: Any) -> None:
    *tables, name = path.split(".")
    for table in tables:
        values = values.setdefault(table, {})
    values[name] = value
