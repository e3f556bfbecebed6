"""``trunkline keys`` and ``trunkline api``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.driving import Cli
from trunkline.errors import ApiNotInstalled, ApiSettingInvalid, UnknownServiceKey


def test_a_key_is_created_listed_and_revoked(cli: Cli) -> None:
    text = cli.text("keys", "create", "deploy", "--role", "producer", "--tenant", "acme")
    key = text.splitlines()[-1]
    key_id = key.split("_")[1]
    assert f"Service key deploy created with id {key_id}. It is shown only now:" in text
    listed = cli.text("keys", "list")
    for part in (key_id, "deploy", "producer", "acme", "active"):
        assert part in listed
    assert key.split("_", 2)[2] not in listed
    assert cli.json("keys", "list")[0]["last_used_at"] is None
    assert "revoked" in cli.text("keys", "revoke", key_id, "--reason", "leaked")
    assert "was revoked before" in cli.text("keys", "revoke", key_id)
    assert cli.json("keys", "list")[0]["active"] is False
    assert cli.json("log", "--kind", "service_key")[0]["reason"] == "leaked"


def test_an_unknown_key_is_named(cli: Cli) -> None:
    with pytest.raises(UnknownServiceKey) as unknown:
        cli.run("keys", "revoke", "nobody")
    assert "trunkline keys list" in unknown.value.hint


def test_without_the_extra_the_command_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['trunkline', 'api'];"
        "from trunkline.cli.main import main; main()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert ApiNotInstalled.code in run.stderr
    assert "pip install 'trunkline[api]'" in run.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRUNKLINE_API_PORT", "99999"),
        ("TRUNKLINE_API_PUBLIC_METRICS", "maybe"),
        ("TRUNKLINE_API_BODY_TIMEOUT", "soon"),
        ("TRUNKLINE_JWT_SECRET", "short"),
        ("TRUNKLINE_JWT_JWKS_URLS", "http://id.example.org/keys"),
        ("TRUNKLINE_JWT_KEYS_FILE", "/nonexistent"),
    ],
)
def test_a_bad_setting_is_named_without_its_value(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ApiSettingInvalid) as refused:
        cli.run("api")
    assert refused.value.exit_code == 2
    if name == "TRUNKLINE_JWT_SECRET":
        assert value not in str(refused.value)
