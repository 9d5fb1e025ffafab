/* Credentials from a kubeconfig and from a pod's mounted files. */
#include "kubernetes/kubeconfig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD                                                             \
	"apiVersion: v1\nkind: Config\ncurrent-context: here\n"          \
	"contexts:\n- {name: there, context: {cluster: c2, user: u2}}\n" \
	"- {name: here, context: {cluster: c1, user: u1}}\n"

static char message[256];

static int parse(struct kubeconfig *out, const char *text)
{
	message[0] = '\0';
	return kubeconfig_parse(out, text, strlen(text), "/etc/weir", message, sizeof(message));
}

static void reads_the_current_context(void **state)
{
	struct kubeconfig config;
	char token[64];

	(void)state;
	assert_int_equal(
		parse(&config, HEAD
		      "clusters:\n- {name: c2, cluster: {server: 'https://wrong'}}\n"
		      "- {name: c1, cluster: {server: 'https://10.0.0.1:6443/', "
		      "certificate-authority: ca.pem}}\n"
		      "users:\n- {name: u1, user: {token: secret, client-certificate: /x/c.pem, "
		      "client-key-data: aGVsbG8=}}\n"),
		0);
	assert_string_equal(config.server, "https://10.0.0.1:6443");
	assert_false(config.insecure);
	assert_string_equal(config.authority.file, "/etc/weir/ca.pem");
	assert_string_equal(config.certificate.file, "/x/c.pem");
	assert_null(config.key.file);
	assert_int_equal(config.key.size, 5);
	assert_memory_equal(config.key.data, "hello", 5);
	assert_int_equal(kubeconfig_token(&config, token, sizeof(token)), 0);
	assert_string_equal(token, "secret");
	assert_int_equal(kubeconfig_token(&config, token, 6), -E2BIG);
	kubeconfig_deinit(&config);
}

static void decodes_base64(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {{"", NULL},      {"aA==", "h"},        {"aGU=", "he"},
		     {"YWJj", "abc"}, {"aGVsbG8", "hello"}, {"YWJ\\nj", "abc"}};
	struct kubeconfig config;
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text),
			 HEAD "clusters: [{name: c1, cluster: {server: 'http://x', "
			      "certificate-authority-data: \"%s\"}}]\n",
			 cases[i].text);
		assert_int_equal(parse(&config, text), 0);
		if (cases[i].want) {
			assert_int_equal(config.authority.size, strlen(cases[i].want));
			assert_memory_equal(config.authority.data, cases[i].want,
					    config.authority.size);
		} else {
			assert_null(config.authority.data);
		}
		kubeconfig_deinit(&config);
	}
}

static void reports_mistakes(void **state)
{
	static const struct {
		const char *text, *want;
		int error;
	} cases[] = {
		{"", "names no context", -EINVAL},
		{"a: [", "kubeconfig:", -EINVAL},
		{"- list", "names no context", -EINVAL},
		{"current-context: x\ncontexts: [{name: y}]", "names no context", -EINVAL},
		{HEAD, "server is missing", -EINVAL},
		{HEAD "clusters: [{name: c1, cluster: {server: 'file:///etc/passwd'}}]",
		 "no http(s) URL", -EINVAL},
		{HEAD "clusters: [{name: c1, cluster: {server: 'https://x', "
		      "certificate-authority-data: '!'}}]",
		 "certificate-authority-data is not base64", -EINVAL},
		{HEAD "clusters: [{name: c1, cluster: {server: 'https://x', "
		      "certificate-authority-data: 'aaaaa'}}]",
		 "certificate-authority-data is not base64", -EINVAL},
		{HEAD "clusters: [{name: c1, cluster: {server: 'https://x'}}]\n"
		      "users: [{name: u1, user: {exec: {command: aws}}}]",
		 "from a program", -ENOTSUP},
	};
	struct kubeconfig config;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(&config, cases[i].text), cases[i].error);
		assert_non_null(strstr(message, cases[i].want));
	}
	assert_int_equal(
		kubeconfig_load(&config, "/nonexistent/kubeconfig", message, sizeof(message)),
		-ENOENT);
	assert_non_null(strstr(message, "/nonexistent/kubeconfig"));
}

static void write_token(const char *path, const char *token)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(token, file);
	fclose(file);
}

static void reads_a_rotated_token(void **state)
{
	char folder[] = "/tmp/weir-test-XXXXXX", path[64], token[64];
	struct kubeconfig config;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/token", folder);
	write_token(path, "first\n");

	unsetenv("KUBERNETES_SERVICE_HOST");
	assert_int_equal(kubeconfig_in_pod(&config, folder, message, sizeof(message)), -ENOENT);
	assert_non_null(strstr(message, "not in a pod"));

	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	assert_int_equal(kubeconfig_in_pod(&config, folder, message, sizeof(message)), 0);
	assert_string_equal(config.server, "https://[fd00::1]:443");
	assert_int_equal(kubeconfig_token(&config, token, sizeof(token)), 0);
	assert_string_equal(token, "first");

	write_token(path, "second\r\nX-Evil: yes");
	assert_int_equal(kubeconfig_token(&config, token, sizeof(token)), 0);
	assert_string_equal(token, "second");

	unlink(path);
	assert_int_equal(kubeconfig_token(&config, token, sizeof(token)), -ENOENT);
	kubeconfig_deinit(&config);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_current_context),
		cmocka_unit_test(decodes_base64),
		cmocka_unit_test(reports_mistakes),
		cmocka_unit_test(reads_a_rotated_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
