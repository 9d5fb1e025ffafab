SHELL_TESTS += e2e/cases/guest.sh e2e/cases/forms.sh e2e/cases/kill.sh e2e/cases/memory.sh e2e/cases/nvml.sh e2e/cases/restart.sh e2e/cases/shares.sh e2e/cases/version.sh
