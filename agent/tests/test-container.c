/* Finding the pod and the container in a cgroup path. */
#include "kubernetes/container.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define UID  "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"
#define UID_ "0b1c2d3e_4f50_6172_8394_a5b6c7d8e9f0"
#define ID   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HASH "d41d8cd98f00b204e9800998ecf8427e"

static struct container_identity parse(const char *text)
{
	struct container_identity identity = {.pid = 7, .uid = 8};

	assert_int_equal(container_parse_cgroup(&identity, text), 0);
	assert_int_equal(identity.pid, 7);
	assert_int_equal(identity.uid, 8);
	return identity;
}

static const struct {
	const char *text, *uid, *id;
	enum container_qos qos;
} pods[] = {
	/* cgroupfs driver */
	{"0::/kubepods/pod" UID "/" ID "\n", UID, ID, CONTAINER_QOS_GUARANTEED},
	{"0::/kubepods/burstable/pod" UID "/" ID, UID, ID, CONTAINER_QOS_BURSTABLE},
	{"0::/kubepods/besteffort/pod" UID "/" ID "\n", UID, ID, CONTAINER_QOS_BEST_EFFORT},
	{"0::/kubepods/besteffort/pod" UID "/crio-" ID "\n", UID, ID, CONTAINER_QOS_BEST_EFFORT},
	/* systemd driver */
	{"0::/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" ID ".scope\n", UID, ID,
	 CONTAINER_QOS_GUARANTEED},
	{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/crio-" ID
	 ".scope\n",
	 UID, ID, CONTAINER_QOS_BURSTABLE},
	{"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_
	 ".slice/docker-" ID ".scope\n",
	 UID, ID, CONTAINER_QOS_BEST_EFFORT},
	{"0::/system.slice/containerd.service/kubepods-besteffort-pod" UID_
	 ".slice:cri-containerd:" ID "\n",
	 UID, ID, CONTAINER_QOS_BEST_EFFORT},
	/* a cgroup inside the container */
	{"0::/kubepods/burstable/pod" UID "/" ID "/init\n", UID, ID, CONTAINER_QOS_BURSTABLE},
	{"0::/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" ID
	 ".scope/system.slice/sshd.service\n",
	 UID, ID, CONTAINER_QOS_GUARANTEED},
	/* kind, a cgroup root, another cgroup namespace */
	{"0::/docker/" ID "/kubelet/kubepods/besteffort/pod" UID "/" ID "\n", UID, ID,
	 CONTAINER_QOS_BEST_EFFORT},
	{"0::/docker/" ID "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
	 "kubelet-kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope\n",
	 UID, ID, CONTAINER_QOS_BURSTABLE},
	{"0::/k3s/kubepods/pod" UID "/" ID "\n", UID, ID, CONTAINER_QOS_GUARANTEED},
	{"0::/../../pod" HASH "/../../kubepods/burstable/pod" UID "/" ID "\n", UID, ID,
	 CONTAINER_QOS_BURSTABLE},
	/* static pods */
	{"0::/kubepods/burstable/pod" HASH "/" ID "\n", HASH, ID, CONTAINER_QOS_BURSTABLE},
	{"0::/kubepods.slice/kubepods-pod" HASH ".slice/crio-" ID ".scope\n", HASH, ID,
	 CONTAINER_QOS_GUARANTEED},
	/* a process of the container runtime; the pod's own cgroup */
	{"0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-conmon-" ID ".scope\n", UID, "",
	 CONTAINER_QOS_GUARANTEED},
	{"0::/kubepods/pod" UID "\n", UID, "", CONTAINER_QOS_GUARANTEED},
	/* cgroup v1 and hybrid: only some lines name the pod */
	{"12:pids:/kubepods/besteffort/pod" UID "/" ID
	 "\n11:cpu,cpuacct:/kubepods/besteffort/pod" UID "/" ID
	 "\n1:name=systemd:/kubepods/besteffort/pod" UID "/" ID "\n0::/\n",
	 UID, ID, CONTAINER_QOS_BEST_EFFORT},
	{"9:name=systemd:/\n8:pids:/kubepods/pod" UID "\n4:memory:/kubepods/pod" UID "/" ID
	 "\n0::/system.slice/containerd.service\n",
	 UID, ID, CONTAINER_QOS_GUARANTEED},
	/* names that a container chose do not count */
	{"0::/kubepods/besteffort/pod" UID "/" ID "/kubepods/pod" HASH "/" ID "\n", UID, ID,
	 CONTAINER_QOS_BEST_EFFORT},
};

static void finds_pods(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
		struct container_identity found = parse(pods[i].text);
		assert_true(found.in_pod);
		assert_string_equal(found.pod_uid, pods[i].uid);
		assert_string_equal(found.container_id, pods[i].id);
		assert_int_equal(found.qos, pods[i].qos);
	}
}

static void finds_no_pod(void **state)
{
	static const char *const texts[] = {
		"0::/\n",
		"0::/system.slice/containerd.service\n",
		"0::/system.slice/docker-" ID ".scope\n",
		"0::/kubepods\n",
		"0::/kubepods/burstable\n",
		"0::/kubepods/burstable/pod\n",
		"0::/kubepods/pod/" ID "\n",
		"0::/kubepods/podx y/" ID "\n",
		"0::/kubepods-podx.txt/" ID "\n",
		"0::/mykubepods-pod" UID_ ".slice/" ID "\n",
		"0::/user.slice/user-1000.slice/kubepods/pod" UID "/" ID "\n",
		/* the same from the agent's own cgroup namespace */
		"0::/../../../user.slice/user-1000.slice/kubepods/pod" UID "/" ID "\n",
		"0::/../user.slice/user-1000.slice/x-kubepods-pod" UID_ ".slice/" ID "\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct container_identity found = parse(texts[i]);
		assert_false(found.in_pod);
		assert_string_equal(found.pod_uid, "");
		assert_string_equal(found.container_id, "");
		assert_int_equal(found.qos, CONTAINER_QOS_NONE);
	}
}

static void keeps_the_path_down_to_the_container(void **state)
{
	(void)state;
	assert_string_equal(parse("0::/kubepods/pod" UID "/" ID "/nested/more\n").cgroup,
			    "/kubepods/pod" UID "/" ID);
	assert_string_equal(parse("2:cpu:/\n1:pids:/batch/jobs\n0::/\n").cgroup, "/batch/jobs");
}

static void refuses_malformed_cgroup_files(void **state)
{
	struct container_identity found;

	(void)state;
	assert_int_equal(container_parse_cgroup(&found, ""), -EINVAL);
	assert_int_equal(container_parse_cgroup(&found, "hello\nworld"), -EINVAL);
	assert_int_equal(container_parse_cgroup(&found, "0::relative\n"), -EINVAL);
}

static void survives_long_names(void **state)
{
	struct container_identity found;
	char text[4096] = "0::/kubepods/pod";
	size_t n = strlen(text);

	(void)state;
	memset(text + n, 'a', sizeof(text) - n - 1);
	text[sizeof(text) - 1] = '\0';
	found = parse(text);
	assert_false(found.in_pod);
	assert_int_equal(strlen(found.cgroup), sizeof(found.cgroup) - 1);
}

static void identifies_processes(void **state)
{
	struct container_identity found;

	(void)state;
	assert_int_equal(container_identify(&found, getpid()), 0);
	assert_int_equal(found.pid, getpid());
	assert_int_equal(found.uid, getuid());
	assert_int_equal(found.cgroup[0], '/');
	assert_int_equal(container_identify(&found, 0x3fffffff), -ESRCH);
	assert_int_equal(container_identify(&found, 0), -ENXIO);
}

static void names_classes(void **state)
{
	(void)state;
	assert_int_equal(container_qos_parse("Guaranteed"), CONTAINER_QOS_GUARANTEED);
	assert_int_equal(container_qos_parse("guaranteed"), CONTAINER_QOS_NONE);
	assert_string_equal(container_qos_name(CONTAINER_QOS_BEST_EFFORT), "BestEffort");
	assert_string_equal(container_qos_name(CONTAINER_QOS_NONE), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_pods),
		cmocka_unit_test(finds_no_pod),
		cmocka_unit_test(keeps_the_path_down_to_the_container),
		cmocka_unit_test(refuses_malformed_cgroup_files),
		cmocka_unit_test(survives_long_names),
		cmocka_unit_test(identifies_processes),
		cmocka_unit_test(names_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
