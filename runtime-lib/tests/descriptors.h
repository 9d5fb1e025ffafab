/* For tests that nothing leaks: how many descriptors the process has open, and one for the count.
 */
#pragma once

#include <dirent.h>

static inline int open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int n = 0;

	while (folder && readdir(folder))
		n++;
	if (folder)
		closedir(folder);
	return n;
}
