-- The files of the demonstration that are to be removed from the store.

select r.path
from trunkline.file_removals as r
