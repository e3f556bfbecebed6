"""Profiles: ready-made sets of tasks with an outer API of their own."""

from typing import ClassVar

from trunkline.errors.base import Refusal, TrunklineError


class ProfileError(TrunklineError):
    """Something about a profile, or about what is installed of it."""

    code = "profile_error"


class DuplicateProfile(ProfileError):
    """Two installed distributions provide a profile of the same name."""

    code = "duplicate_profile"


class ProfileBroken(ProfileError):
    """A profile cannot be imported, or is not what the machinery expects."""

    code = "profile_broken"
    hint = "Fix the profile, or remove the distribution that provides it."


class ProfileInUse(ProfileError):
    """A step of a roll-back would take away what somebody still uses."""

    code = "profile_in_use"
    hint = "Stop the workers that are named, wait a minute, and repeat; or pass --force."


class ProfileNotInstalled(ProfileError):
    """The profile, or the phase of it that is needed, is not installed in this schema."""

    code = "profile_not_installed"
    hint = "Install it with: trunkline profile install NAME --phase N"


class ProfileNeedsPackages(ProfileError):
    """Packages that the handlers of a profile need are missing."""

    code = "profile_needs_packages"
    hint = "Install the extra of the profile, as in: pip install 'trunkline-profiles[executor]'"


class ProfileRefusal(Refusal):
    """A function of a profile refused a call, and nothing of it was done.

    A profile registers a subclass for each SQLSTATE of its own, with a code, a hint and a page.
    """

    code = "profile_refusal"
    hint = "Read what the page of the profile says about its code."
    # Where the profile describes the refusal: an address, or a path in its distribution.
    page: ClassVar[str] = ""


class ProfileSchemaName(ProfileError):
    """The name cannot be the schema of a profile."""

    code = "profile_schema_name"
    hint = (
        "Use 1 to 63 small letters, digits and underscores, not beginning with a digit, pg_ or "
        "trunkline."
    )


class UnknownPhase(ProfileError):
    """The profile has no such phase."""

    code = "unknown_phase"
    hint = "See `trunkline profile list` for the phases of each profile."


class UnknownProfile(ProfileError):
    """There is no such profile."""

    code = "unknown_profile"
    hint = "See `trunkline profile list`."
