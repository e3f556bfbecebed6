select executor.enqueue_job(p_type => %(type)s, p_payload => %(payload)s::jsonb, p_dedupe_key => %(key)s)
