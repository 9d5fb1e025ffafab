# A client that means harm, against a real agent: e2e/cases/hostile.sh.
PROGRAMS += hostile
hostile_SRC    := e2e/hostile/main.c $(patsubst %,e2e/hostile/%.c,client flood rights words)
hostile_STATIC := base
SHELL_TESTS    += e2e/cases/hostile.sh
