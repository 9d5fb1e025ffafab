/* Shared by particles.cu and its host. */
#pragma once

#define MD_NEIGHBOURS 48 /* of an atom */

#define BOX_PARTICLES 64
#define BOX_THREADS   64
#define BOX_AROUND    27 /* with itself */
