"""The rights of an authenticator: a login that acts for callers, such as that of the HTTP API."""

from __future__ import annotations

from typing import Final

__all__ = ["grants", "memberships"]

# Not the worker: it acts on jobs that it has claimed, not for callers.
_ROLES: Final = ("trunkline_producer", "trunkline_operator", "trunkline_reader")
_GRANTS: Final = r"""
grant usage on schema trunkline to :name;
grant execute on function trunkline.schema_version() to :name;
update trunkline_internal.settings as s
set
  value = concat_ws(', ', coalesce(s.value, s.default_value), :text),
  updated_at = trunkline.clock(),
  updated_by = session_user
where s.name = 'authenticators'
  and :text <> all (regexp_split_to_array(coalesce(s.value, s.default_value), '\s*,\s*'));
""".lstrip()


def memberships(login: str) -> str:
    """Return the grants of the roles that the login takes for its callers.

    Run them as the installer. A login that should use none of them by itself is created with
    NOINHERIT.
    """
    return f"grant {', '.join(_ROLES)} to {_identifier(login)};\n"


def grants(login: str) -> str:
    """Return what lets the login connect and set the claims of callers. Run it as the owner."""
    name, text = _identifier(login), login.replace("'", "''")
    return _GRANTS.replace(":name", name).replace(":text", f"'{text}'")


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
