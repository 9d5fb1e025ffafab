SHELL_TESTS += e2e/cases/kill.sh
