"""Errors of profiles: complete systems that are built on Trunkline."""

from typing import ClassVar

from trunkline.errors.base import Refusal, TrunklineError


class ProfileError(TrunklineError):
    """An error of a profile, or of its installation."""

    code = "profile_error"


class DuplicateProfile(ProfileError):
    """Two installed distributions provide a profile of the same name."""

    code = "duplicate_profile"


class ProfileBroken(ProfileError):
    """A profile cannot be imported, or is not what the machinery expects."""

    code = "profile_broken"
    hint = "Fix the profile, or remove the distribution that provides it."


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
    hint = "Install the extra of the profile, as in: pip install 'trunkline-profiles[executor]'"


class ProfileRefusal(Refusal):
    """A function of a profile refused a call, and nothing of it was done.

    A profile registers a subclass for each of its SQLSTATEs, with a code, a hint and a page.
    """

    code = "profile_refusal"
    hint = "Read what the page of the profile says about its code."
    # Where the profile describes the refusal: an address, or a path in its distribution.
    page: ClassVar[str] = ""


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
