# see Makefile
