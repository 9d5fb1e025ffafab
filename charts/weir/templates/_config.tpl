{{/* The programs' configuration, as the values say it: what profiles and `config` are merged into. */}}

{{- define "weir.agentConfig" -}}
# Pods see the folder of `socket` alone, not the agent's state or its control socket.
socket: /run/weir/agent.sock
stateDir: /run/weir-agent/state
control: {socket: /run/weir-agent/control.sock}
metrics: {address: "0.0.0.0:{{ .Values.metrics.port }}"}
kubernetes:
  enabled: true
  resourceName: {{ quote .Values.resourceName }}
  events: {{ .Values.events.enabled }}
  nodeLabels: {{ .Values.nodeLabels.enabled }}
health: {{ toJson .Values.health }}
unregistered: {{ toJson .Values.unregistered }}
policy: {{ .Values.policy }}
levels:
  qos:
    bestEffort: {{ .Values.levels.bestEffort }}
    burstable: {{ .Values.levels.burstable }}
    guaranteed: {{ .Values.levels.guaranteed }}
  priorityClasses: {{ toJson .Values.levels.priorityClasses }}
  raiseNamespaces: {{ toJson .Values.levels.raiseNamespaces }}
memoryDefault: {{ quote .Values.memoryDefault }}
compile:
  mode: {{ quote .Values.compile.mode }}
  helpers: {{ .Values.compile.helpers }}
  memoryMiB: {{ .Values.compile.memoryMiB }}
  seconds: {{ .Values.compile.seconds }}
  cacheDir: /var/cache/weir
  cacheMiB: {{ .Values.compile.cacheMiB }}
nvml: {{ quote .Values.driver.nvml }}
logLevel: {{ .Values.logLevel }}
{{- end }}

{{- define "weir.pluginConfig" -}}
resourceName: {{ .Values.resourceName }}
mode: {{ .Values.mode }}
logLevel: {{ .Values.logLevel }}
pluginDir: /var/lib/kubelet/device-plugins
agentSocketDir: {{ .Values.host.runDir }}
nodeRoot: {{ ternary "/host" "\"\"" (eq (include "weir.pluginHost" .) "true") }}
allocation: {{ .Values.allocation }}
deviceListStrategy: {{ .Values.deviceListStrategy }}
cdi: {dir: {{ .Values.host.cdiDir }}, kind: {{ .Values.cdiKind }}}
library: {hostPath: {{ include "weir.libraryDir" . }}/libweir.so, nvmlPath: {{ include "weir.libraryDir" . }}/libweir-nvml.so}
preload: {hostPath: {{ include "weir.libraryDir" . }}/ld.so.preload}
mps: {pipeDir: {{ .Values.host.runDir }}/mps}
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
{{- toYaml $file }}
{{- end }}

{{/* The data of a ConfigMap: (list $ PROFILE). */}}
{{- define "weir.config" -}}
agent.yaml: |
  {{- include "weir.configFile" (list (index . 0) "agent" (index . 1)) | nindent 2 }}
plugin.yaml: |
  {{- include "weir.configFile" (list (index . 0) "plugin" (index . 1)) | nindent 2 }}
{{- end }}
