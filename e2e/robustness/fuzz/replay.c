/* Stands in for libFuzzer where the compiler has none: runs the target once over each file of the
 * given folders and files. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat info;

	if (!file || fstat(fileno(file), &info) < 0) {
		perror(path);
		return -1;
	}
	uint8_t *data = malloc((size_t)info.st_size + 1);
	size_t size = data ? fread(data, 1, (size_t)info.st_size, file) : 0;
	fclose(file);
	if (!data || size != (size_t)info.st_size) {
		fprintf(stderr, "%s: cannot be read\n", path);
		free(data);
		return -1;
	}
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

static int replay_folder(const char *path, int *runs)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int failed = 0;

	if (!folder) {
		perror(path);
		return -1;
	}
	while ((entry = readdir(folder))) {
		char file[4096];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		failed |= replay_file(file);
		(*runs)++;
	}
	closedir(folder);
	return failed;
}

int main(int argc, char **argv)
{
	int runs = 0, failed = 0;

	for (int i = 1; i < argc; i++) {
		struct stat info;
		if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode)) {
			failed |= replay_folder(argv[i], &runs);
		} else {
			failed |= replay_file(argv[i]);
			runs++;
		}
	}
	printf("%d inputs\n", runs);
	return failed || !runs ? 1 : 0;
}
