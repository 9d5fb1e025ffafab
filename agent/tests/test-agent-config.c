/* The configuration file: its keys, and the messages about mistakes. */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char message[512];

static int parse(struct config *config, const char *text)
{
	message[0] = '\0';
	return config_parse(config, "f.yaml", text, strlen(text), message, sizeof(message));
}

static void test_defaults(void **state)
{
	struct config config;

	(void)state;
	setenv("NODE_NAME", "node-a", 1);
	assert_int_equal(parse(&config, ""), 0);
	assert_string_equal(config.socket, "/run/weir/agent.sock");
	assert_string_equal(config.state_dir, "/run/weir-agent/state");
	assert_string_equal(config.gpu.policy->name, "whpf");
	assert_string_equal(config.metrics_address, "127.0.0.1:9477");
	assert_string_equal(config.control_socket, "/run/weir-agent/control.sock");
	assert_false(config.kubernetes.enabled);
	assert_string_equal(config.kubernetes.node, "node-a");
	assert_string_equal(config.kubernetes.names.priority, "weir.dev/priority");
	assert_int_equal(config.levels.best_effort, 0);
	assert_int_equal(config.levels.burstable, 1);
	assert_int_equal(config.levels.guaranteed, 2);
	assert_int_equal(config.clients, 1024);
	assert_int_equal(config.clients_per_container, 64);
	assert_int_equal(config.compile.mode, COMPILE_AUTO);
	assert_int_equal(config.compile.helpers, 2);
	assert_string_equal(config.compile.cache_dir, "");
	config_deinit(&config);
}

/* Empty values, as in deploy/docs/agent.yaml. */
static void test_empty_values_are_defaults(void **state)
{
	struct config config;

	(void)state;
	setenv("NODE_NAME", "node-a", 1);
	assert_int_equal(parse(&config, "kubernetes: {nodeName: \"\"}\n"
					"compile: {program: \"\", cacheDir: \"\"}\n"
					"mps: {program: \"\"}\n"),
			 0);
	assert_string_equal(config.kubernetes.node, "node-a");
	assert_string_equal(config.compile.program, "");
	assert_string_equal(config.compile.cache_dir, "");
	assert_string_equal(config.mps.program, "");
	config_deinit(&config);
}

static void test_everything(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(
		parse(&config,
		      "socket: /a/b\n"
		      "stateDir: /s\n"
		      "policy: wfq\n"
		      "scheduling:\n"
		      "  aging: never\n"
		      "  quantum: 2ms\n"
		      "  minQuantum: 0.5ms\n"
		      "  maxOverhead: 5\n"
		      "  evictionCost: 300us\n"
		      "metrics: {address: '[::]:9477'}\n"
		      "control: {socket: /c}\n"
		      "kubernetes:\n"
		      "  enabled: true\n"
		      "  kubeconfig: /k\n"
		      "  nodeName: n1\n"
		      "  resourceName: r/s\n"
		      "levels:\n"
		      "  default: normal\n"
		      "  qos: {bestEffort: normal, guaranteed: critical}\n"
		      "  priorityClasses: {gold: critical, dirt: low}\n"
		      "  annotation: example.org/p\n"
		      "  latencyAnnotation: example.org/l\n"
		      "  memoryAnnotation: example.org/m\n"
		      "  weightAnnotation: example.org/w\n"
		      "  computeAnnotation: example.org/c\n"
		      "  yieldAnnotation: example.org/y\n"
		      "  minRateAnnotation: example.org/r\n"
		      "  raiseNamespaces: [a, b]\n"
		      "standalone:\n"
		      "  rules:\n"
		      "  - {uid: 1000, level: high, share: 30, latencySlo: 2ms, memory: 8Gi, "
		      "computeLimit: 25, yield: needed+25%, minRate: 0.8}\n"
		      "  - cgroup: /batch*\n"
		      "    level: low\n"
		      "limits: {clients: 10, clientsPerContainer: 3}\n"
		      "nvml: /lib/x.so\n"
		      "compile:\n"
		      "  mode: ptx\n"
		      "  program: /w\n"
		      "  helpers: 3\n"
		      "  memoryMiB: 512\n"
		      "  seconds: 7\n"
		      "  cacheDir: /d\n"
		      "  cacheMiB: 99\n"
		      "logLevel: debug\n"),
		0);
	assert_string_equal(config.socket, "/a/b");
	assert_string_equal(config.metrics_address, "[::]:9477");
	assert_true(config.kubernetes.enabled);
	assert_string_equal(config.kubernetes.node, "n1");
	assert_string_equal(config.kubernetes.names.priority, "example.org/p");
	assert_string_equal(config.kubernetes.names.latency_slo, "example.org/l");
	assert_string_equal(config.kubernetes.names.memory, "example.org/m");
	assert_string_equal(config.kubernetes.names.weight, "example.org/w");
	assert_string_equal(config.kubernetes.names.compute, "example.org/c");
	assert_string_equal(config.kubernetes.names.yield, "example.org/y");
	assert_string_equal(config.kubernetes.names.min_rate, "example.org/r");
	assert_string_equal(config.kubernetes.names.share, "r/s");
	assert_string_equal(config.gpu.policy->name, "wfq");
	assert_true(config.gpu.scheduling.aging == POLICY_NEVER);
	assert_int_equal(config.gpu.scheduling.quantum, 2000000);
	assert_int_equal(config.gpu.scheduling.min_quantum, 500000);
	assert_int_equal(config.gpu.scheduling.max_overhead, 50000);
	assert_int_equal(config.gpu.scheduling.cost, 300000);
	assert_int_equal(config.rules[0].share, 30);
	assert_int_equal(config.rules[0].compute_limit, 25);
	assert_int_equal(config.rules[0].yield, 26);
	assert_int_equal(config.rules[0].min_rate, 800);
	assert_int_equal(config.rules[1].yield, WEIR_YIELD_AUTO);
	assert_int_equal(config.rules[0].latency_slo, 2000000);
	assert_true(config.rules[0].memory == 8ull << 30);
	assert_int_equal(config.rules[1].share, 0);
	assert_int_equal(config.levels.by_default, 1);
	assert_int_equal(config.levels.best_effort, 1);
	assert_int_equal(config.levels.burstable, 1);
	assert_int_equal(config.levels.guaranteed, 3);
	assert_int_equal(config.levels.n_classes, 2);
	assert_string_equal(config.levels.classes[0].name, "gold");
	assert_int_equal(config.levels.classes[0].level, 3);
	assert_int_equal(config.levels.n_raise, 2);
	assert_string_equal(config.levels.raise[1], "b");
	assert_int_equal(config.n_rules, 2);
	assert_true(config.rules[0].has_uid);
	assert_int_equal(config.rules[0].uid, 1000);
	assert_null(config.rules[0].cgroup);
	assert_false(config.rules[1].has_uid);
	assert_string_equal(config.rules[1].cgroup, "/batch*");
	assert_int_equal(config.clients, 10);
	assert_int_equal(config.clients_per_container, 3);
	assert_int_equal(config.log_level, LOG_DEBUG);
	assert_int_equal(config.compile.mode, COMPILE_PTX);
	assert_string_equal(config.compile.program, "/w");
	assert_int_equal(config.compile.helpers, 3);
	assert_int_equal(config.compile.memory_mib, 512);
	assert_int_equal(config.compile.seconds, 7);
	assert_string_equal(config.compile.cache_dir, "/d");
	assert_int_equal(config.compile.cache_mib, 99);
	config_deinit(&config);
}

/* A deprecated key still works. The old and the new key together are a mistake. */
static void test_deprecated_key(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(parse(&config, "mps: {keeper: true}"), 0); /* deprecated */
	assert_true(config.mps.supervisor);
	config_deinit(&config);
	assert_int_equal(parse(&config, "mps: {supervisor: true}"), 0);
	assert_true(config.mps.supervisor);
	config_deinit(&config);
	assert_true(parse(&config, "mps: {keeper: true, supervisor: false}") < 0); /* deprecated */
	assert_string_equal(message, "f.yaml:1:21: key `supervisor` is there twice");
}

static void test_apply(void **state)
{
	struct config config, next;
	char waiting[512];

	(void)state;
	assert_int_equal(parse(&config, ""), 0);
	assert_int_equal(parse(&next, "socket: /s\n"
				      "mode: mps\n"
				      "levels: {default: high, annotation: a/b}\n"
				      "mps: {dir: /m, required: true}\n"
				      "compile: {helpers: 7}\n"
				      "standalone: {rules: [{level: low}]}\n"
				      "gpus: [{index: 3, policy: wfq}]\n"),
			 0);
	config_apply(&config, &next, waiting, sizeof(waiting));
	assert_string_equal(waiting, "socket, levels.annotation, compile.helpers, mps.dir");
	assert_string_equal(config.socket, "/run/weir/agent.sock");
	assert_int_equal(config.compile.helpers, 2);
	assert_int_equal(config.gpu.mode, GPU_MODE_MPS);
	assert_int_equal(config.levels.by_default, 2);
	assert_true(config.mps.required);
	assert_int_equal(config.n_rules, 1);
	assert_ptr_equal(config_for_gpu(&config, &(struct gpu_traits){"", 3, ""}).policy,
			 &policy_wfq);
	assert_int_equal(next.n_rules, 0);
	config_deinit(&config);
	config_deinit(&next);
}

static const struct {
	const char *text, *message;
} mistakes[] = {
	{"sockett: /a", "f.yaml:1:1: unknown key `sockett`"},
	{"levels:\n  qos:\n    besteffort: low", "f.yaml:3:5: unknown key `besteffort`"},
	{"socket: /a\nsocket: /b", "f.yaml:2:1: key `socket` is there twice"},
	{"socket: a", "f.yaml:1:9: expected an absolute path"},
	{"socket: [a]", "f.yaml:1:9: expected a path"},
	{"socket: ", "f.yaml:1:8: expected an absolute path"},
	{"policy: best", "f.yaml:1:9: expected a policy (hpf, whpf, ffs, static, dynamic, wfq, "
			 "levels, coexec), not "
			 "`best`"},
	{"metrics: {address: localhost}",
	 "f.yaml:1:20: expected an address like 0.0.0.0:9477 or [::]:9477, not `localhost`"},
	{"metrics: {address: '127.0.0.1:65536'}",
	 "f.yaml:1:20: expected an address like 0.0.0.0:9477 or [::]:9477, not `127.0.0.1:65536`"},
	{"metrics: {address: '[::]:94770'}",
	 "f.yaml:1:20: expected an address like 0.0.0.0:9477 or [::]:9477, not `[::]:94770`"},
	{"metrics: {address: '127.0.0.1:-1'}",
	 "f.yaml:1:20: expected an address like 0.0.0.0:9477 or [::]:9477, not `127.0.0.1:-1`"},
	{"metrics: {address: '127.0.0.1: 9477'}",
	 "f.yaml:1:20: expected an address like 0.0.0.0:9477 or [::]:9477, not `127.0.0.1: 9477`"},
	{"metrics: yes", "f.yaml:1:10: expected a mapping"},
	{"kubernetes: {enabled: yes}", "f.yaml:1:23: expected true or false"},
	{"levels: {default: 2}",
	 "f.yaml:1:19: expected a level: low, normal, high or critical, not `2`"},
	{"levels: {priorityClasses: [a]}", "f.yaml:1:27: expected a mapping"},
	{"levels: {raiseNamespaces: a}", "f.yaml:1:27: expected a list"},
	{"limits: {clients: 0}", "f.yaml:1:19: expected a number from 1 to 16384"},
	{"limits: {clients: -1}", "f.yaml:1:19: expected a number from 1 to 16384"},
	{"limits: {clients: 1x}", "f.yaml:1:19: expected a number from 1 to 16384"},
	{"limits: {clients: 99999999999999999999}",
	 "f.yaml:1:19: expected a number from 1 to 16384"},
	{"standalone: {rules: [{uid: 1}]}", "f.yaml:1:22: expected a `level` in this rule"},
	{"standalone: {rules: [{cgroup: '/a*b', level: low}]}",
	 "f.yaml:1:31: expected `*` only at the end of a cgroup path"},
	{"standalone: {rules: [{level: low, share: 101}]}",
	 "f.yaml:1:42: expected a number from 1 to 100"},
	{"standalone: {rules: [{level: low, computeLimit: 0}]}",
	 "f.yaml:1:49: expected a number from 1 to 100"},
	{"standalone: {rules: [{level: low, yield: all}]}",
	 "f.yaml:1:42: expected auto, whole, needed, needed+N% with N from 0 to 100, or a number "
	 "of SMs from 1 to 9999, not `all`"},
	{"standalone: {rules: [{level: low, minRate: 0}]}",
	 "f.yaml:1:44: expected a number above 0 and at most 1, with up to three decimals, not "
	 "`0`"},
	{"standalone: {rules: [{level: low, latencySlo: 1us}]}",
	 "f.yaml:1:47: expected a duration from 100us to 10s, like 2ms, not `1us`"},
	{"standalone: {rules: [{level: low, memory: 8GB}]}",
	 "f.yaml:1:43: expected an amount of memory from 2Mi to 1Pi, like 8Gi, not `8GB`"},
	{"scheduling: {quantum: 1us}",
	 "f.yaml:1:23: expected a duration from 100us to 1h, not `1us`"},
	{"scheduling: {aging: soon}",
	 "f.yaml:1:21: expected a duration from 100us to 1h, not `soon`"},
	{"scheduling: {maxOverhead: 0}", "f.yaml:1:27: expected a number from 1 to 100"},
	{"compile: {mode: cubin}",
	 "f.yaml:1:17: expected auto, machine-code, ptx or off, not `cubin`"},
	{"compile: {mode: [ptx]}", "f.yaml:1:17: expected auto, machine-code, ptx or off"},
	{"compile: {memoryMiB: 1}", "f.yaml:1:22: expected a number from 256 to 65536"},
	{"compile: {cacheDir: here}", "f.yaml:1:21: expected an absolute path"},
	{"compile: {cache: 1}", "f.yaml:1:11: unknown key `cache`"},
	{"logLevel: loud", "f.yaml:1:11: expected error, warning, info or debug, not `loud`"},
	{"- a", "f.yaml:1:1: expected a mapping"},
	{"a: {b", "f.yaml:2:1: did not find expected ',' or '}'"},
	{"socket: \"/a\\0b\"", "f.yaml:1:9: expected a path"},
};

static void test_mistakes(void **state)
{
	struct config config;

	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		assert_true(parse(&config, mistakes[i].text) < 0);
		assert_string_equal(message, mistakes[i].message);
	}
}

static void test_long_text(void **state)
{
	struct config config;
	char text[400];

	(void)state;
	snprintf(text, sizeof(text), "socket: /%0300d", 0);
	assert_true(parse(&config, text) < 0);
	assert_string_equal(message, "f.yaml:1:9: expected a path of at most 255 bytes");
}

static void test_files(void **state)
{
	struct config config;

	(void)state;
	assert_true(config_load(&config, "/nowhere.yaml", message, sizeof(message)) < 0);
	assert_string_equal(message, "/nowhere.yaml: No such file or directory");
	assert_true(config_load(&config, "/tmp", message, sizeof(message)) < 0);
	assert_string_equal(message, "/tmp: Is a directory");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_empty_values_are_defaults),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_deprecated_key),
		cmocka_unit_test(test_apply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
