"""Two thousand requests made up from the OpenAPI document: no server error, none undocumented."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.web.api.deployment import Deployment, named

CASES = 1000  # on each of the two databases
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# They answer for as long as somebody listens; tests of their own listen to them.
STREAMS = ("/events", "/executions/{execution_id}/events")
REAL: dict[str, list[Any]] = {
    "external_id": ["extract-users", "load-users", "off", "odd/name 100%", "broken-1"],
    "name": ["loads", "broken", "odd/group", "load", "ci"],
    "execution_id": [1, 2, 3, 6],
    "entry_id": [1, 7, 8, 9],
    "letter_id": [1, 2, 3],
}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_requests_made_up_from_the_document_are_answered_as_it_says(
    deployment: Deployment,
) -> None:
    admin = deployment.admin
    schema = schemathesis.openapi.from_dict(admin.get("/openapi.json").json())
    base = f"http://127.0.0.1:{deployment.site.port}/api/v1"
    found: list[Any] = [one.ok() for one in cast(Iterable[Any], schema.get_all_operations())]
    operations = [one for one in found if one.path not in STREAMS]
    each = math.ceil(CASES / len(operations) / 2)
    statuses: dict[int, int] = {}

    def send(case: Any, real: dict[str, Any] | None) -> None:
        if real is not None:
            for name in REAL.keys() & (case.path_parameters or {}).keys():
                case.path_parameters[name] = named(str(real[name]))
            if case.method == "PATCH":
                tag = admin.get(case.formatted_path).headers.get("etag")
                case.headers["if-match"] = tag or '"0"'
        response = case.call(base_url=base, headers={"authorization": "Bearer admin"})
        statuses[response.status_code] = statuses.get(response.status_code, 0) + 1
        case.validate_response(response, checks=CHECKS)

    real = st.none() | st.fixed_dictionaries(
        {name: st.sampled_from(values) for name, values in REAL.items()}
    )
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            _tried(each, operation.as_strategy(generation_mode=mode), real, send)
    assert sum(statuses.values()) >= CASES, statuses
    # It has not only been refused.
    assert statuses[200] > CASES / 10, statuses
    assert statuses[202] > 0, statuses


def _tried(times: int, cases: Any, real: Any, send: Any) -> None:
    @settings(
        max_examples=times,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, real=real)
    def attempt(case: Any, real: dict[str, Any] | None) -> None:
        send(case, real)

    attempt()
