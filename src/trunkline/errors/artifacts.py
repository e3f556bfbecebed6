"""Errors of stores and of links to their files.

Refusals of the engine about artifacts are in `trunkline.errors.durable_refusals`.
"""

from trunkline.errors.base import TrunklineError


class StoreError(TrunklineError):
    """A store did not do what it was asked to."""

    code = "store_error"
    hint = "`trunkline store check` tries every operation and shows which of them fails."


class StoreNotConfigured(StoreError):
    """The application uses artifacts, and names no store."""

    code = "store_not_configured"
    hint = (
        "Set TRUNKLINE_STORE to a folder such as file:///var/lib/trunkline/files, or to a bucket "
        "such as s3://bucket, or pass store= to Trunkline()."
    )


class StoreAddressInvalid(StoreError):
    """The address of a store cannot be used."""

    code = "store_address_invalid"
    hint = "Use file:///folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix."


class StoreNotInstalled(StoreError):
    """A store in a bucket is configured, and the extra `s3` is not installed."""

    code = "store_not_installed"
    hint = "Run `pip install 'trunkline[s3]'` where the application and its workers run."


class StoreUnreachable(StoreError):
    """The store does not answer, answers with an error of the server, or takes too long."""

    code = "store_unreachable"
    hint = "The attempt is retried. Run `trunkline store check` if it happens again."


class StoreDenied(StoreError):
    """The store refuses the credentials, or does not allow the operation."""

    code = "store_denied"
    hint = "Check the credentials of the store and its access rules with `trunkline store check`."


class StoreFull(StoreError):
    """The store has no space left."""

    code = "store_full"
    hint = "Free space, or delete artifacts: `trunkline artifacts usage`."


class StoreFolderUnsafe(StoreError):
    """A folder of a local store is a symbolic link, or something other than a folder or file."""

    code = "store_folder_unsafe"
    hint = "Remove the link. Trunkline follows no symbolic link inside of a store."


class FileMissing(StoreError):
    """The store has no such file."""

    code = "file_missing"
    hint = "It was deleted, or removed from the store by other means."


class FileDamaged(StoreError):
    """A file does not have the size or the hash that was recorded when it was written."""

    code = "file_damaged"
    hint = "Something else has changed the file in the store. Delete the artifact and run the job."


class FileHeadersUnsafe(StoreError):
    """A browser might run scripts in a file, because it was uploaded without its headers."""

    code = "file_headers_unsafe"
    hint = "Upload it again with the headers that came with the upload link. Reading it works."


class LinkInvalid(StoreError):
    """A signed link is incomplete, expired, or was changed."""

    code = "link_invalid"
    hint = "Ask for a new link. Links are valid for an hour unless the caller chose another time."
