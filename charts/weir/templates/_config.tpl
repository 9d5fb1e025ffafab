{{/* The programs' configuration from the values, before profiles and `config` are merged into it. */}}

{{- define "weir.agentConfig" -}}
# Pods see only the folder of `socket`, not the agent's state or its control socket.
socket: /run/weir/agent.sock
stateDir: /run/weir-agent/state
control: {socket: /run/weir-agent/control.sock}
metrics: {address: "0.0.0.0:{{ .Values.metrics.port }}"}
kubernetes:
  enabled: true
  resourceName: {{ quote .Values.resourceName }}
  events: {{ .Values.events.enabled }}
  nodeLabels: {{ .Values.nodeLabels.enabled }}
  checkpoint: /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint
{{- if .Values.dra.enabled }}
  claims: {{ include "weir.draDir" . }}/claims.json
{{- end }}
health: {{ toJson .Values.health }}
unregistered: {{ toJson .Values.unregistered }}
overruns: {{ toJson .Values.overruns }}
policy: {{ .Values.policy }}
mode: {{ .Values.mode }}
gpus:
{{- range .Values.gpus }}
- {{ omit . "shares" | toJson }}
{{- else }} []
{{- end }}
# The same path on the node, in the agent's pod, and where the daemon runs.
mps:
  dir: {{ .Values.host.runDir }}-mps
  root: {{ ternary "\"\"" "/host" .Values.nvidiaRuntime.enabled }}
  preload: {{ ternary "\"\"" (printf "%s/libweir-mps.so" (include "weir.libraryDir" .)) .Values.nvidiaRuntime.enabled }}
  required: {{ .Values.mps.required }}
levels:
  qos:
    bestEffort: {{ .Values.levels.bestEffort }}
    burstable: {{ .Values.levels.burstable }}
    guaranteed: {{ .Values.levels.guaranteed }}
  priorityClasses: {{ toJson .Values.levels.priorityClasses }}
  raiseNamespaces: {{ toJson .Values.levels.raiseNamespaces }}
memoryDefault: {{ quote .Values.memoryDefault }}
hardwarePreemption: {{ .Values.hardwarePreemption }}
compile:
  mode: {{ quote .Values.compile.mode }}
  helpers: {{ .Values.compile.helpers }}
  memoryMiB: {{ int64 .Values.compile.memoryMiB }}
  seconds: {{ .Values.compile.seconds }}
  cacheDir: /var/cache/weir
  cacheMiB: {{ int64 .Values.compile.cacheMiB }}
nvml: {{ quote .Values.driver.nvml }}
logLevel: {{ .Values.logLevel }}
{{- end }}

{{- define "weir.pluginConfig" -}}
resourceName: {{ .Values.resourceName }}
mode: {{ .Values.mode }}
logLevel: {{ .Values.logLevel }}
pluginDir: /var/lib/kubelet/device-plugins
agentSocketDir: {{ .Values.host.runDir }}
metrics: {address: "0.0.0.0:{{ .Values.metrics.pluginPort }}"}
gpuSockets: true
nodeRoot: {{ ternary "/host" "\"\"" (eq (include "weir.pluginHost" .) "true") }}
allocation: {{ .Values.allocation }}
noRoom: {{ ternary "wait" "fail" (eq (include "weir.waits" .) "true") }}
deviceListStrategy: {{ .Values.deviceListStrategy }}
cdi: {dir: {{ .Values.host.cdiDir }}, kind: {{ .Values.cdiKind }}}
{{- if .Values.dra.enabled }}
dra: {enabled: true, shares: {{ .Values.dra.shares }}, registryDir: {{ .Values.host.kubeletDir }}/plugins_registry, stateDir: {{ include "weir.draDir" . }}}
{{- end }}
library: {hostPath: {{ include "weir.libraryDir" . }}/libweir.so, nvmlPath: {{ include "weir.libraryDir" . }}/libweir-nvml.so}
preload: {hostPath: {{ include "weir.libraryDir" . }}/ld.so.preload}
mps: {dir: {{ .Values.host.runDir }}-mps, required: {{ .Values.mps.required }}}
gpus:
{{- range .Values.gpus }}
- {{ pick . "uuid" "index" "product" "mode" "shares" | toJson }}
{{- else }} []
{{- end }}
driver:
  mount: {{ ternary .Values.driver.mount "never" (eq (include "weir.pluginHost" .) "true") }}
  root: {{ .Values.driver.root }}
  nvml: {{ quote .Values.driver.nvml }}
container:
  mounts: {{ toJson .Values.container.mounts }}
  env: {{ toJson .Values.container.env }}
health: {{ toJson .Values.health }}
{{- end }}

{{/* One program's file: (list $ "agent" PROFILE). */}}
{{- define "weir.configFile" -}}
{{- $top := index . 0 }}
{{- $file := include (printf "weir.%sConfig" (index . 1)) $top | fromYaml }}
{{- $file = mergeOverwrite $file (deepCopy (dig (index . 1) dict $top.Values.config)) }}
{{- $file = mergeOverwrite $file (deepCopy (dig (index . 1) dict (index . 2))) }}
{{- if and (eq "agent" (index . 1)) (contains "\"mode\":\"mps" (pick $file "mode" "gpus" | toJson)) }}
{{- $_ := set $file.mps "supervisor" true }}
{{- end }}
{{- if and $file.mps (hasKey $file.mps "keeper") }}{{/* deprecated */}}
{{- $_ := set $file.mps "supervisor" (or $file.mps.supervisor $file.mps.keeper) }}{{/* deprecated */}}
{{- $_ := unset $file.mps "keeper" }}{{/* deprecated */}}
{{- end }}
{{- include "weir.checkGpus" $file.gpus }}
{{- toYaml $file }}
{{- end }}

{{/* What a schema cannot say: no two entries of `gpus` select the same. */}}
{{- define "weir.checkGpus" -}}
{{- $seen := dict }}
{{- range . }}
{{- $select := pick . "uuid" "index" "product" | toJson | lower }}
{{- if hasKey $seen $select }}
{{- fail (printf "gpus: two entries for %s" $select) }}
{{- end }}
{{- $_ := set $seen $select true }}
{{- end }}
{{- end }}

{{/* The data of a ConfigMap: (list $ PROFILE). */}}
{{- define "weir.config" -}}
agent.yaml: |
  {{- include "weir.configFile" (list (index . 0) "agent" (index . 1)) | nindent 2 }}
plugin.yaml: |
  {{- include "weir.configFile" (list (index . 0) "plugin" (index . 1)) | nindent 2 }}
{{- end }}

{{/* The part of a profile's configuration that only a start of the agent applies (at_start in
agent/config/config.c): a change of it restarts the pods. The plugin applies everything. (list $ PROFILE) */}}
{{- define "weir.fixedConfig" -}}
{{- $file := include "weir.configFile" (list (index . 0) "agent" (index . 1)) | fromYaml }}
{{- $levels := pick (default dict $file.levels) "annotation" "latencyAnnotation" "memoryAnnotation" "weightAnnotation" "computeAnnotation" "memoryFullAnnotation" "yieldAnnotation" "minRateAnnotation" }}
{{- $mps := pick (default dict $file.mps) "program" "root" "preload" "dir" }}
{{- $rest := omit $file "policy" "scheduling" "mode" "hardwarePreemption" "disobedience" "memoryDefault" "memoryFull" "memoryWait" "memoryOvercommit" "gpus" "logLevel" "limits" "health" "unregistered" "overruns" "standalone" "levels" "mps" }}
{{- merge (dict "levels" $levels "mps" $mps) $rest | toJson }}
{{- end }}

{{/* "true" if some GPU has mode mps or mps-per-level: (list $ PROFILE). Then a pod of its own runs the daemons, and the agent needs the
driver's libraries, because it queries the daemons by NVIDIA's program. */}}
{{- define "weir.usesMps" -}}
{{- (include "weir.configFile" (list (index . 0) "agent" (index . 1)) | fromYaml).mps.supervisor | default false }}
{{- end }}

{{/* Path of the agent's control socket: (list $ PROFILE). */}}
{{- define "weir.controlSocket" -}}
{{- (include "weir.configFile" (list (index . 0) "agent" (index . 1)) | fromYaml).control.socket }}
{{- end }}
