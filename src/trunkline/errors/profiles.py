"""Errors of profiles: complete systems that are built on Trunkline."""

from trunkline.errors.base import TrunklineError


class ProfileError(TrunklineError):
    """An error of a profile, or of its installation."""

    code = "profile_error"


class ProfileInUse(ProfileError):
    """A step of a roll-back would remove objects that are still in use."""

    code = "profile_in_use"
    hint = "Stop the named workers, wait a minute and repeat the command. Or pass --force."


class ProfileNotInstalled(ProfileError):
    """The profile, or the phase that is needed, is not installed in this schema."""

    code = "profile_not_installed"
    hint = "Install it with: trunkline profile install NAME --phase N"


class ProfileNeedsPackages(ProfileError):
    """Packages that the handlers of a profile need are missing."""

    code = "profile_needs_packages"
    hint = "Install them with: pip install 'trunkline[executor]'"


class ProfileSchemaName(ProfileError):
    """The name cannot be the schema of a profile."""

    code = "profile_schema_name"
    hint = (
        "Use 1 to 63 lower-case letters, digits and underscores. The name must not begin with a "
        "digit, pg_ or trunkline."
    )


class UnknownPhase(ProfileError):
    """The profile has no such phase."""

    code = "unknown_phase"
    hint = "List the phases of each profile with: trunkline profile list"


class UnknownProfile(ProfileError):
    """There is no such profile."""

    code = "unknown_profile"
    hint = "List the profiles with: trunkline profile list"
