"""The exceptions that the profile registers are those of its functions and of its page."""

import re
from pathlib import Path

import psycopg
import pytest

from profiles.tests.clinical.conftest import Clinic
from trunkline import profiles
from trunkline_profiles.clinical import PROFILE
from trunkline_profiles.clinical.refusals import ERRORS, ClinicalRefusal, EnqueueDisabled

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_a_refusal_has_a_row_on_the_page(error: type[ClinicalRefusal]) -> None:
    page, _, anchor = error.page.partition("#")
    _, _, part = (ROOT / page).read_text(encoding="utf-8").partition(f"## {anchor.capitalize()}\n")
    (row,) = [line for line in part.splitlines() if error.sqlstate in line]
    assert f"`{error.code.removeprefix('clinical_')}`" in row


def test_functions_raise_what_is_registered(clinic: Clinic) -> None:
    superuser = clinic.database.superuser()
    for error in ERRORS:
        code = error.code.removeprefix("clinical_")
        with pytest.raises(psycopg.Error) as raised:
            superuser.execute("select clinical.refuse(%s, 'no')", [code])
        assert (raised.value.sqlstate, raised.value.diag.message_hint) == (
            error.sqlstate,
            error.hint,
        )
    raising = set(re.findall(r"'(CP\d{3})'", PROFILE.text("phase1", "base.sql")))
    assert raising == {error.sqlstate for error in ERRORS}


def test_a_client_catches_the_registered_exception(clinic: Clinic) -> None:
    with (
        pytest.raises(EnqueueDisabled, match="enqueue disabled"),
        profiles.session(clinic.database.superuser_dsn, PROFILE) as session,
    ):
        session.connection.execute("select clinical.refuse('enqueue_disabled', 'enqueue disabled')")
