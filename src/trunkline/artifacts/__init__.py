"""Files that jobs produce: stores for them, signed links, and streaming ZIP archives.

The stores know no database. Uploads and reads combine them with the calls of the engine; handlers
upload, clients and operators read, and workers sweep.
"""

from trunkline.artifacts._async.archive import AsyncArchive
from trunkline.artifacts._async.files import AsyncArtifacts
from trunkline.artifacts._async.large import AsyncLargeResults, AsyncResultLimits
from trunkline.artifacts._async.large import read_result as read_result_async
from trunkline.artifacts._async.uploads import AsyncUploads
from trunkline.artifacts._sync.archive import SyncArchive
from trunkline.artifacts._sync.files import SyncArtifacts
from trunkline.artifacts._sync.large import SyncLargeResults, SyncResultLimits, read_result
from trunkline.artifacts._sync.uploads import SyncUploads
from trunkline.artifacts.address import open_store
from trunkline.artifacts.async_store import AsyncStore, SyncStore
from trunkline.artifacts.links import Answer, answer_link
from trunkline.artifacts.local import LocalStore
from trunkline.artifacts.objects import ObjectStore
from trunkline.artifacts.store import Capabilities, Store, StoredFile, Written
from trunkline.artifacts.zipping import ZipEntry, zip_stream

__all__ = [
    "Answer",
    "AsyncArchive",
    "AsyncArtifacts",
    "AsyncLargeResults",
    "AsyncResultLimits",
    "AsyncStore",
    "AsyncUploads",
    "Capabilities",
    "LocalStore",
    "ObjectStore",
    "Store",
    "StoredFile",
    "SyncArchive",
    "SyncArtifacts",
    "SyncLargeResults",
    "SyncResultLimits",
    "SyncStore",
    "SyncUploads",
    "Written",
    "ZipEntry",
    "answer_link",
    "open_store",
    "read_result",
    "read_result_async",
    "zip_stream",
]
