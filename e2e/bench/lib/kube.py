"""A small Kubernetes client: objects as JSON, and a release that behaves as Helm's."""

import json
import ssl
import time
import urllib.error
import urllib.request

# Kind to API, plural, and whether it lies in a namespace.
KINDS = {
    "Namespace": ("api/v1", "namespaces", False),
    "Node": ("api/v1", "nodes", False),
    "Pod": ("api/v1", "pods", True),
    "ConfigMap": ("api/v1", "configmaps", True),
    "Service": ("api/v1", "services", True),
    "ServiceAccount": ("api/v1", "serviceaccounts", True),
    "DaemonSet": ("apis/apps/v1", "daemonsets", True),
    "Job": ("apis/batch/v1", "jobs", True),
    "Role": ("apis/rbac.authorization.k8s.io/v1", "roles", True),
    "RoleBinding": ("apis/rbac.authorization.k8s.io/v1", "rolebindings", True),
    "ClusterRole": ("apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "ValidatingAdmissionPolicy": ("apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies", False),
    "ValidatingAdmissionPolicyBinding": ("apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", False),
}


class ApiError(Exception):
    """The API server's message, in one line."""

    def __init__(self, code, message):
        super().__init__(f"API server: {code}: {message}")
        self.code = code


class Api:
    def __init__(self, port, ca_file, token="token-admin"):
        self.base, self.token = f"https://127.0.0.1:{port}/", token
        self.context = ssl.create_default_context(cafile=str(ca_file))

    def call(self, method, path, body=None, content="application/json"):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            try:
                text = json.loads(text)["message"]
            except (ValueError, KeyError):
                pass
            raise ApiError(error.code, text) from None

    @staticmethod
    def path(kind, name="", namespace=""):
        api, plural, namespaced = KINDS[kind]
        middle = f"namespaces/{namespace}/" if namespaced else ""
        return f"{api}/{middle}{plural}" + (f"/{name}" if name else "")

    def path_of(self, item, namespace):
        meta = item["metadata"]
        return self.path(item["kind"], meta["name"], meta.get("namespace", namespace))

    def get(self, kind, name, namespace=""):
        """None: there is no such object."""
        try:
            return self.call("GET", self.path(kind, name, namespace))
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def list(self, kind, namespace=""):
        return self.call("GET", self.path(kind, "", namespace))["items"]

    def apply(self, item, namespace):
        path = self.path_of(item, namespace) + "?fieldManager=weir&force=true"
        return self.call("PATCH", path, item, "application/apply-patch+yaml")

    def create(self, item, namespace):
        return self.call("POST", self.path(item["kind"], "", namespace), item)

    def delete(self, kind, name, namespace="", grace=None):
        options = {"propagationPolicy": "Background"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            self.call("DELETE", self.path(kind, name, namespace), options)
        except ApiError as error:
            if error.code != 404:
                raise


def wait_for(what, seconds, condition, pause=0.1):
    """Waits until @condition returns something true, and returns it."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come within {seconds} s")
        time.sleep(pause)


def hook_of(item):
    return item["metadata"].get("annotations", {}).get("helm.sh/hook", "")


def weight_of(item):
    return int(item["metadata"].get("annotations", {}).get("helm.sh/hook-weight", "0"))


class Release:
    """What `helm install|upgrade|uninstall --wait` do, with manifests that `helm template` made."""

    def __init__(self, api, namespace):
        self.api, self.namespace, self.items = api, namespace, []

    def install(self, items, seconds=90):
        """Installs, or upgrades: objects that are missing in @items are removed."""
        hooks = [item for item in items if hook_of(item)]
        items = [item for item in items if not hook_of(item)]
        before = {self.api.path_of(item, self.namespace): item for item in self.items if not hook_of(item)}
        self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}, "")
        for item in items:
            self.api.apply(item, self.namespace)
            before.pop(self.api.path_of(item, self.namespace), None)
        for item in before.values():
            self.remove(item)
        self.items = items + hooks
        wait_for("the release to be ready", seconds, self.ready)

    def remove(self, item):
        meta = item["metadata"]
        self.api.delete(item["kind"], meta["name"], meta.get("namespace", self.namespace))

    def ready(self):
        return all(self.rolled_out(item) for item in self.items if item["kind"] == "DaemonSet" and not hook_of(item))

    def rolled_out(self, item):
        found = self.api.get("DaemonSet", item["metadata"]["name"], self.namespace)
        if not found:
            return False
        if found["spec"]["updateStrategy"]["type"] == "OnDelete":
            return True  # Helm does not wait for these
        status = found["status"]
        wanted = status.get("desiredNumberScheduled", 0)
        return (
            status.get("observedGeneration") == found["metadata"]["generation"]
            and wanted > 0
            and status.get("updatedNumberScheduled", 0) == wanted
            and status.get("numberReady", 0) == wanted
        )

    def no_pods(self):
        return not self.api.list("Pod", self.namespace)

    def uninstall(self, seconds=120):
        hooks = sorted((item for item in self.items if hook_of(item) == "post-delete"), key=weight_of)
        for item in self.items:
            if not hook_of(item):
                self.remove(item)
        wait_for("the release's pods to go", seconds, self.no_pods)
        for item in hooks:
            self.api.create(item, self.namespace)
            if item["kind"] == "Job":
                wait_for("the uninstall job", seconds, lambda name=item["metadata"]["name"]: self.done(name))
        for item in reversed(hooks):
            self.remove(item)
        wait_for("the uninstall pods to go", seconds, self.no_pods)
        self.items = []

    def done(self, job):
        status = (self.api.get("Job", job, self.namespace) or {}).get("status", {})
        if status.get("failed"):
            raise ApiError(0, f"job {job} failed")
        return status.get("succeeded")
