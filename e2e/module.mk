# Each part of e2e names its own files.
include $(wildcard e2e/*/module.mk)
