"""BERT's tokenizer without transformers: it gives the same ids, or raises `UnsupportedError`.

Like transformers, it is built from the vocabulary and `tokenizer_config.json`. If `tokenizer.json` differs from that,
transformers has to open the tokenizer.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from citerec.encode.light import UnsupportedError

CLASSES = {"BertTokenizer", "BertTokenizerFast"}
SPECIAL = {  # by their keys in tokenizer_config.json
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
EXTRA = ("additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens")
MAPS = ("special_tokens_map.json", "added_tokens.json")  # written by older versions of transformers
INPUTS, TYPES = "model_input_names", "token_type_ids"
PLAIN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}

Config = Mapping[str, Any]


class WordPiece:
    """A WordPiece tokenizer.

    Attributes:
        separator: The token between two texts.
        first, last: The ids of the tokens before and after a text.
        typed: Whether it gives token types to a model.
    """

    def __init__(self, folder: Path) -> None:
        """Open the tokenizer of a model folder.

        Raises:
            UnsupportedError: If it is not a plain BERT tokenizer.
        """
        config = _json(folder / "tokenizer_config.json")
        _check(folder, config)
        special = {key: _content(config.get(key, token)) for key, token in SPECIAL.items()}
        vocabulary = _vocabulary(folder, special, config)
        if missing := [token for token in special.values() if token not in vocabulary]:
            raise UnsupportedError(f"{folder}: {missing[0]} is not in its vocabulary")
        self.separator = special["sep_token"]
        self.first, self.last = vocabulary[special["cls_token"]], vocabulary[self.separator]
        self.typed = TYPES in config.get(INPUTS, [TYPES])
        self._tokenizer = _tokenizer(vocabulary, special, config)

    def __len__(self) -> int:
        """Return the number of tokens in the vocabulary."""
        return int(self._tokenizer.get_vocab_size())

    def ids(self, texts: Sequence[str], at_most: int, *, special: bool = True) -> list[list[int]]:
        """Tokenize texts into at most `at_most` ids each, with or without special tokens around each text."""
        self._tokenizer.enable_truncation(at_most)
        encodable = [text.encode(errors="replace").decode() for text in texts]
        encoded = self._tokenizer.encode_batch(encodable, add_special_tokens=special)
        return [one.ids for one in encoded]


def _tokenizer(vocabulary: dict[str, int], special: Mapping[str, str], config: Config) -> Any:
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.models import WordPiece as Model
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    first, last = special["cls_token"], special["sep_token"]
    tokenizer: Any = Tokenizer(Model(vocabulary, unk_token=special["unk_token"]))
    tokenizer.normalizer = BertNormalizer(clean_text=True, **_normalizer(config))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in special.values()]
    )
    tokenizer.post_processor = TemplateProcessing(
        single=[first, "$A", last],
        special_tokens=[(first, vocabulary[first]), (last, vocabulary[last])],
    )
    return tokenizer


def _check(folder: Path, config: Config) -> None:
    """Refuse a tokenizer that differs from BERT's.

    Raises:
        UnsupportedError: If it has other tokens, another class, or another way to truncate.
    """
    tokenizer_class = config.get("tokenizer_class") or _json(folder / "config.json").get(
        "tokenizer_class"
    )
    # Without a name, transformers uses BERT's tokenizer for a BERT.
    if tokenizer_class and tokenizer_class not in CLASSES:
        raise UnsupportedError(f"{folder}: its tokenizer is {tokenizer_class}")
    if config.get("add_bos_token") is not None or config.get("add_eos_token") is not None:
        raise UnsupportedError(f"{folder}: other tokens are added around its texts")
    if config.get("truncation_side", "right") != "right" or config.get("split_special_tokens"):
        raise UnsupportedError(f"{folder}: its tokenizer truncates or splits texts in another way")
    if any(config.get(key) for key in EXTRA):
        raise UnsupportedError(f"{folder}: its tokenizer has additional special tokens")
    if not isinstance(config.get(INPUTS, []), list):
        raise UnsupportedError(f"{folder}: the names of its inputs cannot be read")
    special = {_content(config.get(key, token)) for key, token in SPECIAL.items()}
    for entry in (config.get("added_tokens_decoder") or {}).values():
        _check_added(folder, entry, special)
    for name in MAPS:
        content = _json(folder / name)
        added = {
            key: value for key, value in content.items() if key not in SPECIAL and key not in EXTRA
        }
        tokens = {key: _content(value) for key, value in content.items() if key in SPECIAL}
        differs = any(_content(config.get(k, SPECIAL[k])) != token for k, token in tokens.items())
        if differs or set(added) - special or any(content.get(key) for key in EXTRA):
            raise UnsupportedError(f"{folder / name}: its tokenizer has additional tokens")


def _check_added(folder: Path, entry: Any, special: set[str]) -> None:
    content = _content(entry)
    if content not in special or any(entry.get(key, False) != v for key, v in PLAIN.items()):
        raise UnsupportedError(f"{folder}: its tokenizer has the added token {content}")


def _vocabulary(folder: Path, special: Mapping[str, str], config: Config) -> dict[str, int]:
    """Return the id of each piece: from tokenizer.json, as transformers reads it, else from vocab.txt."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        return _from_lines(folder / "vocab.txt")
    content = _json(file)
    try:
        for entry in content.get("added_tokens") or []:
            _check_added(folder, entry, set(special.values()))
        model: Any = content["model"]
        vocabulary = {str(piece): int(number) for piece, number in model["vocab"].items()}
        parts = {
            "model": {key: value for key, value in model.items() if key != "vocab"},
            "normalizer": content["normalizer"],
            "pre_tokenizer": content["pre_tokenizer"],
            "single": _template(content["post_processor"], "single"),
            "pair": _template(content["post_processor"], "pair"),
        }
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise UnsupportedError(f"{file} cannot be parsed") from error
    for part, expected in _expected(special, config).items():
        if parts[part] != expected:
            raise UnsupportedError(f"{file}: its {part} is {parts[part]}, expected {expected}")
    return vocabulary


def _from_lines(file: Path) -> dict[str, int]:
    from tokenizers.models import WordPiece as Model

    try:
        return Model.read_file(str(file))
    except Exception as error:  # the library, written in Rust, raises the base class
        raise UnsupportedError(f"{file} cannot be read") from error


def _expected(special: Mapping[str, str], config: Config) -> dict[str, Any]:
    """Return the parts of tokenizer.json for a tokenizer that transformers builds from this configuration."""
    return {
        "model": {
            "type": "WordPiece",
            "unk_token": special["unk_token"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
        },
        "normalizer": {"type": "BertNormalizer", "clean_text": True, **_normalizer(config)},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "single": [special["cls_token"], "A", special["sep_token"]],
        "pair": [special["cls_token"], "A", special["sep_token"], "B", special["sep_token"]],
    }


def _normalizer(config: Config) -> dict[str, Any]:
    return {
        "handle_chinese_chars": config.get("tokenize_chinese_chars", True),
        "strip_accents": config.get("strip_accents"),
        "lowercase": config.get("do_lower_case", True),
    }


def _template(entry: Any, name: str) -> list[str]:
    """Return the template for one text or a pair in tokenizer.json: the names of tokens, and A and B for the texts."""
    if entry["type"] == "BertProcessing":
        first, last = entry["cls"][0], entry["sep"][0]
        return [first, "A", last] if name == "single" else [first, "A", last, "B", last]
    if entry["type"] != "TemplateProcessing":
        return [str(entry["type"])]
    return [next(iter(part.values()))["id"] for part in entry[name]]


def _content(token: Any) -> str:
    """Return the text of a token in a configuration, where it is a string or an object with flags."""
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str):
        raise UnsupportedError(f"a special token is {text!r}, expected a string")
    if isinstance(token, dict) and any(token.get(key, False) != v for key, v in PLAIN.items()):
        raise UnsupportedError(f"the special token {text} has unsupported flags")
    return text


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        content: Any = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise UnsupportedError(f"{file} cannot be read") from error
    if not isinstance(content, dict):
        raise UnsupportedError(f"{file} does not hold a JSON object")
    return content
