# Nothing to build yet; see README.md.
