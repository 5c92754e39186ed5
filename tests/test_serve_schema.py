"""The server's description of itself: requests that are drawn from it get no internal error."""

from pathlib import Path
from typing import Any

import pytest
from support.server import serving

from citerec.folder import IndexFolder
from citerec.serve.app import create_app
from citerec.serve.options import model_settings
from citerec.serve.service import Service


@pytest.fixture(scope="module")
def service(sample_index: IndexFolder) -> Any:
    """The sample, by words alone."""
    models = model_settings(["none"], ranker="none")
    return Service({"sample": sample_index.path}, models)


def test_the_description_holds_routes_examples_and_errors(service: Service) -> None:
    described = create_app(service).openapi()

    assert {"/v1/recommend", "/v1/search", "/v1/papers/{id}", "/v1/index"} <= {*described["paths"]}
    assert described["components"]["schemas"]["RecommendRequest"]["examples"]
    errors = described["paths"]["/v1/recommend"]["post"]["responses"]
    assert {"400", "401", "422", "429", "504"} <= {*errors}
    assert "application/problem+json" in errors["422"]["content"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_request_that_the_description_allows_or_forbids_is_an_internal_error(
    service: Service, tmp_path: Path
) -> None:
    schemathesis: Any = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, settings

    with serving(service) as client:
        schema = schemathesis.openapi.from_url(f"{client.base_url}/openapi.json")
        asked = 0
        for result in schema.get_all_operations():
            operation = result.ok()

            @given(case=operation.as_strategy())
            @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
            def one(case: Any) -> None:
                nonlocal asked
                answer = case.call(base_url=str(client.base_url), timeout=60)
                asked += 1
                assert answer.status_code < 500, (case.as_curl_command(), answer.text)
                if answer.status_code >= 400:
                    assert "application/problem+json" in answer.headers["content-type"]

            one()

    assert asked > 100
