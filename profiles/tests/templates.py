"""Template databases in which a profile is installed."""

from tests.support import databases
from tests.support.servers import Server
from trunkline import profiles
from trunkline.profiles import installer

__all__ = ["template_with_profile"]


def template_with_profile(server: Server, name: str) -> str:
    """Return the name of a template that has all phases of this profile."""

    def build(dsn: str) -> None:
        profile = profiles.get(name)
        installer.install(dsn, profile, [phase.name for phase in profile.phases])

    return databases.ensure_template_with(server, name, build)
