-- Every document and its outcome.

select
  f.filename,
  case
    when f.completed_at is not null then 'completed'
    when f.processing_error is not null then 'stopped'
    else 'waiting'
  end as state,
  coalesce(f.processing_error ->> 'message', f.processing_error ->> 'error_message', f.processing_error ->> 'reason') as problem,
  (select count(*) from clinical.clinical_records as r where r.shell_file_id = f.id) as records
from clinical.shell_files as f
order by f.filename
