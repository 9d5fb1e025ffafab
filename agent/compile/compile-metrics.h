/* The compile service's numbers, to Prometheus' text format. Pure. */
#pragma once

#include <stdio.h>

#include "compile/compile.h"

void compile_metrics_write(FILE *out, const struct compile *compile);
