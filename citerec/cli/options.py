"""The options of commands as views of settings: a parameter that is a model becomes one option for each of its fields.

The model declares type, range, default and help text; the function of the command receives the checked model. Defaults
of options come from `citerec.toml`: a table for each command, which typer takes as its default map.
"""

import inspect
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from functools import partial, wraps
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from citerec.errors import BadInputError

if TYPE_CHECKING:
    from citerec.index.folder import IndexFolder

AsFormat = Annotated[Literal["table", "json"], "The output format."]
Index = Annotated[
    Path | None,
    "The index folder; optional if indexes/ contains only one.",
]
Split = Annotated[str, "The split of the queries: train, dev or test."]
Format = Annotated[
    str,
    "auto recognises the format by content; or the name of one, such as canonical, bibtex or ris, or of "
    "a reader that a package adds.",
]
SkipBad = Annotated[bool, "Skip invalid records."]
Force = Annotated[bool, "Replace what exists."]
Ray = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Work on a Ray cluster, such as 10.0.0.1:6379; local for workers on this machine, of --threads each.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A TOML file of settings; of train, with the tables [encoder], [reranker], [ranker].",
    ),
]

# Flags of the models of a command, where it shows some fields or under other names: the fields that a flag sets.
Flags = Mapping[str, str]
MODEL: Flags = {"--device": "device", "--dtype": "precision"}
RERANK: Flags = {
    "--reranker": "model",
    "--rerank-depth": "depth",
    "--query-tokens": "query_tokens",
    "--candidate-tokens": "candidate_tokens",
    "--rerank-weight": "weight",
    **MODEL,
}
BM25: Flags = {
    "--query-form": "form",
    "--k1": "k1",
    "--b": "b",
    "--stop-words": "stop_words",
}

SETTINGS = "citerec.toml"
# A file that comes with somebody else's folder must not make a command write, delete, listen, or send texts elsewhere.
REFUSED = frozenset(
    "output append force delete results report map query title abstract pick run qrels from resume "
    "search update yes host no_token token_file allow_host allow_origin zotero feed mail smtp collect desk ray".split()
)


def under(table: str, flags: Flags) -> dict[str, str]:
    """Return the flags of nested settings."""
    return {flag: f"{table}.{path}" for flag, path in flags.items()}


def settings_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its parameters that are models, and those that `Annotated[type, help]` declares.

    A parameter `Annotated[Model, flags]` has these options, else one for each field. An option that is not given leaves
    the default of its field. A model with a method `read` is read from the file of `--config` and the options. Of the
    others, a positional parameter is an argument.
    """
    parameters: list[inspect.Parameter] = []
    # parameter, its fields, turns off
    options: dict[str, tuple[str, list[str], bool]] = {}
    models: dict[str, type[BaseModel]] = {}
    for name, parameter in inspect.signature(
        function, eval_str=True
    ).parameters.items():
        kind, *more = get_args(parameter.annotation) or [parameter.annotation]
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            parameters.append(_described(parameter))
            continue
        models[name] = kind
        every = {f"--{field.replace('_', '-')}": field for field in kind.model_fields}
        for flag, paths in (more[0] if more else every).items():
            option, turns_off = _option(flag, _field(kind, paths.split()[0]))
            options[option.name] = (name, paths.split(), turns_off)
            parameters.append(option)
        if hasattr(kind, "read"):
            parameters.append(_keyword("config", Config))

    @wraps(function)
    def command(**given: Any) -> None:
        values: dict[str, dict[str, Any]] = {name: {} for name in models}
        for option, (name, paths, turns_off) in options.items():
            value = given.pop(option)
            for path in paths if value not in (None, []) else ():
                *tables, field = path.split(".")
                nested = values[name]
                for table in tables:
                    nested = nested.setdefault(table, {})
                nested[field] = not value if turns_off else value
        for name, kind in models.items():
            read = getattr(kind, "read", None)
            given[name] = (
                read(given.pop("config"), values[name])
                if read
                else kind(**values[name])
            )
        function(**given)

    command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    return command


def _field(kind: type[BaseModel], path: str) -> FieldInfo:
    """Return a field of a model, or of one that it holds."""
    table, _, rest = path.partition(".")
    field = kind.model_fields[table]
    if not rest:
        return field
    return _field(_leaf(field.annotation), rest)


def _option(flag: str, field: FieldInfo) -> tuple[inspect.Parameter, bool]:
    """Return the option of a field as a parameter, and whether its flag turns the field off."""
    annotation = _leaf(field.annotation)
    default = field.default
    text = field.description or ""
    bounds = {type(bound): bound for bound in field.metadata}
    off = annotation is bool and default is True
    shown = default.value if isinstance(default, StrEnum) else default
    has_default = shown not in (None, "", (), False, 0) and not off
    info = typer.Option(
        flag,
        *((f"-{flag[2]}",) if flag in ("--quiet", "--verbose") else ()),
        min=bounds[Ge].ge if Ge in bounds else None,
        max=bounds[Le].le if Le in bounds else None,
        help=f"Do not {text[:1].lower()}{text[1:]}" if off else text,
        show_default=str(shown) if has_default else False,
    )
    return _keyword(
        flag.lstrip("-").replace("-", "_"), Annotated[annotation | None, info]
    ), off


def _described(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter `Annotated[type, help]` as typer reads it: an option, or an argument if it is positional."""
    kind = inspect.Parameter.KEYWORD_ONLY
    metadata = getattr(parameter.annotation, "__metadata__", (None,))
    if not isinstance(text := metadata[0], str):
        return parameter.replace(kind=kind)
    info: Any = typer.Argument(help=text)
    if parameter.kind is kind:
        info = typer.Option(f"--{parameter.name.replace('_', '-')}", help=text)
    annotation = Annotated[get_args(parameter.annotation)[0], info]
    return parameter.replace(kind=kind, annotation=annotation)


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _leaf(annotation: Any) -> Any:
    """Return the type that one option takes: of `int | None` the first."""
    if get_origin(annotation) is tuple:
        return list[get_args(annotation)[0]]
    return get_args(annotation)[0] if isinstance(annotation, UnionType) else annotation


def refuse_empty_paths(command: Any) -> None:
    """Make the parser of a command refuse an empty path, which Python would take for the current folder."""
    for inner in getattr(command, "commands", {}).values():
        refuse_empty_paths(inner)
    for parameter in command.params:
        if Path in (kind := parameter.type_descriptor.annotation, *get_args(kind)):
            parameter.process_value = partial(_named, parameter.process_value)


def _named(process: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    if "" in (value if isinstance(value, list | tuple) else [value]):
        raise typer.BadParameter("it is empty; name a file or a folder")
    return process(context, value)


def open_named(index: Path | None) -> "IndexFolder":
    """Open the index of `--index`; without it, the only one under `indexes/`."""
    from citerec.index.folder import find_index, open_index

    return open_index(find_index(index))


def settings_file() -> Path | None:
    """Return the file of the working folder, else that of the user's configuration folder; None without one."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    places = Path(SETTINGS), Path(base).expanduser() / "citerec" / SETTINGS
    return next((file for file in places if file.exists()), None)


def default_map(path: Path, command: Any, names: Collection[str]) -> dict[str, Any]:
    """Return the options that a TOML file sets, by command, as the default map of the command line `command`.

    It has a table for each command, such as `[recommend]` or `[corpus.convert]`; `names` are those of all commands.
    """
    from citerec.files.reading import read_toml

    tables = read_toml(path)
    if unknown := [name for name in tables if name.replace("_", "-") not in names]:
        raise BadInputError(path, f"[{unknown[0]}] is no command; see: citerec --help")
    return dict(_defaults(path, "", tables, command))


def _defaults(
    path: Path, name: str, table: Mapping[str, Any], command: Any
) -> Iterator[tuple[str, Any]]:
    commands: dict[str, Any] = getattr(command, "commands", {})
    options = {
        option.lstrip("-").replace("-", "_"): parameter
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--")
    }
    for key, value in table.items():
        here = f"{name}{key}"
        option = key.replace("-", "_")
        inner = key.replace("_", "-")
        if inner in commands and isinstance(value, dict):
            yield inner, dict(_defaults(path, f"{here}.", value, commands[inner]))
        elif not name and isinstance(value, dict):
            continue  # of a command that does not run now
        elif option not in options or not name:
            known = (
                ", ".join(options) if name else "none outside the table of a command"
            )
            raise BadInputError(
                path, f"unknown setting {here!r}; known settings: {known}"
            )
        elif option in REFUSED or here in ("index.index", "watch.index"):
            raise BadInputError(
                path, f"{here!r} cannot be set in a file; give it as an option"
            )
        else:
            yield options[option].name, value
