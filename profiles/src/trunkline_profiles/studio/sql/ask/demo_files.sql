select a.storage_path, a.artifact_type, a.sha256, a.file_size_bytes, a.duration_seconds
from studio.job_artifacts as a
where a.job_id = %(job)s
order by a.storage_path
