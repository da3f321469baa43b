"""File formats: study files, imports from other tools, exports."""
