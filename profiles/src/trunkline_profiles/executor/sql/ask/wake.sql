select executor.run_wake_ups()
