select clinical.record_take_over(p_step => %(step)s, p_table => %(table)s, p_dry_run => %(dry_run)s, p_detail => %(detail)s::jsonb)
