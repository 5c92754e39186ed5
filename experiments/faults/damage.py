"""Damages each file of an index, of its models and of the cache: `verify` and the next search must find it."""

import random
import resource
from pathlib import Path

from commands import DRAFT, Command, Facts, Stage

from citerec.cli import run

PAGE = 4096
KINDS = ("flip", "zero", "cut", "empty", "swap", "link", "remove")
TRAINED = Command("train --index idx --config plan.toml --force", "idx")
EMBEDDED = Command(
    "encode --index idx --encoder idx/models/encoder --device cpu", "idx"
)
SEARCH = Command(
    f"recommend --index idx {DRAFT} --format json --output list.json --device cpu",
    "list.json",
)
MOST = 2**30  # bytes


def damage(file: Path, kind: str, others: list[Path], rng: random.Random) -> bool:
    """Damage a file; return whether it is another one now."""
    data = file.read_bytes()
    place = rng.randrange(max(len(data), 1))
    page = place // PAGE * PAGE
    if kind in ("link", "remove"):
        aside = file.rename(Path("aside"))
        if kind == "link":
            file.symlink_to(aside.absolute())
        return True
    flipped = bytes([data[place] ^ 1 << rng.randrange(8)]) if data else b""
    new = {
        "flip": data[:place] + flipped + data[place + 1 :],
        "zero": data[:page]
        + bytes(len(data[page : page + PAGE]))
        + data[page + PAGE :],
        "cut": data[:place],
        "empty": b"",
        "swap": rng.choice(others).read_bytes(),
    }[kind]
    file.write_bytes(new)
    return new != data


def prepare_models(stage: Stage) -> tuple[list[str], bytes]:
    """Train on the index of the start, and fill its cache by a search; return its files, and the list that it gives."""
    stage.restart()
    for command in (TRAINED, EMBEDDED, SEARCH):
        code, log, _ = stage.call(Command(command.arguments, command.writes, cold=True))
        assert code == 0, log
    answer = (stage.root / "list.json").read_bytes()
    (stage.root / "list.json").unlink()
    (stage.folder / "start").rename(stage.folder / "untrained")
    stage.root.rename(stage.folder / "start")
    stage.restart()
    kept = [
        *(stage.root / "idx").rglob("*"),
        *(stage.root / "cache" / "citerec").rglob("*"),
    ]
    return sorted(str(f.relative_to(stage.root)) for f in kept if f.is_file()), answer


def damaged(
    stage: Stage, name: str, kind: str, answer: bytes, seed: int
) -> tuple[bool, list[str], int]:
    """Damage a file; return whether it was changed, what is wrong, and the peak memory in bytes."""
    stage.restart()
    in_cache = name.startswith("cache/")

    def work() -> Facts:
        file = Path(name)
        others = [f for f in sorted(file.parent.iterdir()) if f.is_file() and f != file]
        changed = damage(
            file,
            kind,
            others or [Path("papers.jsonl")],
            random.Random(f"{seed}{name}{kind}"),
        )
        verified = run(["verify", "--index", "idx", "--quiet"])
        code = run(stage.arguments(SEARCH))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {
            "code": code,
            "changed": changed,
            "verified": verified,
            "memory": memory,
        }

    code, log, facts = stage.child(work, cold=True)
    wrong = (
        [f"exit code {code}: {log[-1500:]}"] if "Traceback" in log or not facts else []
    )
    if not wrong and facts["changed"]:
        if facts["verified"] != (0 if in_cache else 2):
            wrong.append(f"verify: exit code {facts['verified']}")
        same = code == 0 and (stage.root / "list.json").read_bytes() == answer
        if not same and code != 2:
            wrong.append(f"search: exit code {code}, another list")
    if facts.get("memory", 0) > MOST:
        wrong.append(f"{facts['memory'] / 2**20:,.0f} MiB")
    return bool(facts.get("changed")), wrong, int(facts.get("memory", 0))
