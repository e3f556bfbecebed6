select h.file_path, h.file_size from exports.export_history as h
