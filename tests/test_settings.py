"""Settings from values by name: what is accepted, and what the message says otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import pytest

from citerec.errors import ConfigError
from citerec.settings import check_least, checked, settings_from


class Fruit(StrEnum):
    APPLE = "apple"
    PEAR = "pear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Basket:
    size: int = 3

    def __post_init__(self) -> None:
        check_least(self, {"size": 1})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    name: str
    price: float = 1.0
    open: bool = True
    fruit: Fruit | None = None
    basket: Basket = Basket()
    mode: Literal["auto", "none"] = "auto"
    shares: tuple[float, ...] = ()
    ends: tuple[int, int] = (0, 1)
    counts: Mapping[str, int] | None = None


def test_values_become_those_of_their_fields() -> None:
    given = {
        "name": "A",
        "price": 2,
        "fruit": "pear",
        "basket": {"size": 5},
        "shares": [1, 0.5],
        "ends": [3, 4],
        "counts": {"a": 1},
    }

    shop = settings_from(Shop, given)

    assert shop == Shop(
        name="A",
        price=2.0,
        fruit=Fruit.PEAR,
        basket=Basket(size=5),
        shares=(1.0, 0.5),
        ends=(3, 4),
        counts={"a": 1},
    )
    assert (type(shop.price), type(shop.fruit), type(shop.shares[0])) == (float, Fruit, float)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nam": "A"}, "s.toml: unknown setting 'nam'; known settings: name, price, open, fruit,"),
        ({}, "s.toml: setting 'name' is missing"),
        ({"name": 1}, "s.toml: name must be text, got 1"),
        ({"name": "A", "price": "x"}, "s.toml: price must be a number, got 'x'"),
        ({"name": "A", "price": True}, "price must be a number, got True"),
        ({"name": "A", "open": 1}, "open must be true or false, got 1"),
        ({"name": "A", "fruit": "plum"}, "fruit must be apple, pear; got 'plum'"),
        ({"name": "A", "fruit": 7}, "fruit must be apple, pear; got 7"),
        ({"name": "A", "mode": "x"}, "mode must be auto, none, got 'x'"),
        ({"name": "A", "mode": ["x"]}, "mode must be auto, none, got"),
        ({"name": "A", "shares": 1}, "shares must be a list of numbers, got 1"),
        ({"name": "A", "shares": ["x"]}, "shares must be a list of numbers, got"),
        ({"name": "A", "ends": [1]}, "ends must be a list of whole numbers, got"),
        ({"name": "A", "counts": {"a": "b"}}, "counts must be a table, got"),
        ({"name": "A", "basket": 3}, "basket must be a table, got 3"),
        ({"name": "A", "basket": {"size": 1.5}}, "basket.size must be a whole number, got 1.5"),
        ({"name": "A", "basket": {"sise": 1}}, "s.toml: unknown setting 'basket.sise'"),
        ({"name": "A", "basket": {"size": 0}}, "s.toml: basket: size must be at least 1, got 0"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(given: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        settings_from(Shop, given, "s.toml: ")

    assert message in str(error.value)


def test_checked_values_may_be_completed_before_they_are_used() -> None:
    assert checked(Shop, {"price": 2}) == {"price": 2.0}
