select clinical.take_over(p_step => %(step)s, p_table => %(table)s)
