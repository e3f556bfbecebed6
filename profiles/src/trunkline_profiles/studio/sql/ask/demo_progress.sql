select j.status, j.progress from studio.jobs as j where j.id = %(job)s
