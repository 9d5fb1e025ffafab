# make lint, as one of the tests.
SHELL_TESTS += e2e/lint/lint.sh
LONG_TESTS  += lint.sh
