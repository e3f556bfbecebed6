select u.file_id, u.job_id
from clinical.submit_upload(
  p_patient_id => %(patient)s, p_storage_path => %(path)s, p_file_facts => %(facts)s, p_idempotency_key => %(key)s
) as u
