select studio.register_tasks()
