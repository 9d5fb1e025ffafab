/* Copies to the GPU: a launch often follows, so each may show speculative demand
 * (gates/speculation.h). */
#pragma once

/* Column of the table. */
void copies_settings(void);
