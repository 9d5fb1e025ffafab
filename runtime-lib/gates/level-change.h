/* Changes of level: the worker settles the bindings that the link hands over. See README.md for why
 * a client is raised only when its streams have passed the gates of its lower level. */
#pragma once

#include "client/client.h"
#include "client/subsystem.h"

/* Columns of the table. */
void level_init(struct client *client);
void level_open(struct client *client);
void level_look(struct client *client, struct tick *tick);
void level_drive(struct client *client, struct tick *tick);
void level_work(struct client *client, struct tick *tick);
void level_forget(struct client *client);
