{{- define "weir.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "weir.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "weir.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "weir.selectorLabels" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end }}

{{- define "weir.labels" -}}
{{ include "weir.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "weir.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "weir.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* An image: (list $ "repository") */}}
{{- define "weir.image" -}}
{{- $top := index . 0 }}
{{- with $top.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}
{{- index . 1 }}:{{ default $top.Chart.AppVersion $top.Values.image.tag }}
{{- end }}

{{/* "true": the plugin writes a CDI specification. */}}
{{- define "weir.cdi" -}}
{{ or .Values.dra.enabled (and (ne .Values.deviceListStrategy "envvar") (hasPrefix "weir.dev/" .Values.cdiKind)) }}
{{- end }}

{{/* The driver's folder on the node: which claims are prepared. */}}
{{- define "weir.draDir" -}}
{{ .Values.host.kubeletDir }}/plugins/gpu.weir.dev
{{- end }}

{{/* "true": the device plugin looks for driver and device nodes in the host's root. */}}
{{- define "weir.pluginHost" -}}
{{ or (not .Values.nvidiaRuntime.enabled) (eq (include "weir.cdi" .) "true") }}
{{- end }}

{{/* The folder of this version's library on the node. */}}
{{- define "weir.libraryDir" -}}
{{ .Values.host.libraryDir }}/{{ .Chart.AppVersion }}
{{- end }}

{{/* The affinity of pods for nodes without profile: the values' affinity, but not on nodes that a profile names. */}}
{{- define "weir.affinity" -}}
{{- $affinity := deepCopy .Values.affinity }}
{{- if .Values.profiles }}
{{- $none := dict "key" .Values.profileLabel "operator" "NotIn" "values" (keys .Values.profiles | sortAlpha) }}
{{- $node := dig "nodeAffinity" dict $affinity }}
{{- $required := dig "requiredDuringSchedulingIgnoredDuringExecution" "nodeSelectorTerms" (list dict) $node }}
{{- $terms := list }}
{{- range $required }}
{{- $terms = append $terms (set . "matchExpressions" (append (default list .matchExpressions) $none)) }}
{{- end }}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) }}
{{- $_ := set $affinity "nodeAffinity" $node }}
{{- end }}
{{- toYaml $affinity }}
{{- end }}

{{/* By name, everything that has a DaemonSet and a ConfigMap: the nodes without profile, and the nodes of each profile. */}}
{{- define "weir.profiles" -}}
{{- $base := dict "label" "" "config" dict "nodeSelector" .Values.nodeSelector "affinity" (include "weir.affinity" . | fromYaml) }}
{{- $all := dict (include "weir.fullname" .) $base }}
{{- range $name, $config := .Values.profiles }}
{{- $selector := merge (dict $.Values.profileLabel $name) $.Values.nodeSelector }}
{{- $profile := dict "label" $name "config" $config "nodeSelector" $selector "affinity" $.Values.affinity }}
{{- $_ := set $all (printf "%s-%s" (include "weir.fullname" $) $name) $profile }}
{{- end }}
{{- toYaml $all }}
{{- end }}

{{/* Refuses an installation whose pods no node could start. `helm template` sees no cluster, so it checks nothing. */}}
{{- define "weir.requireRuntimeClass" -}}
{{- $name := .Values.nvidiaRuntime.className }}
{{- if and .Values.nvidiaRuntime.enabled $name (lookup "v1" "Namespace" "" "default") (not (lookup "node.k8s.io/v1" "RuntimeClass" "" $name)) }}
{{- fail (printf "\n\nThis cluster has no RuntimeClass `%s`, which Weir's pods ask for. Do one of these:\n- install NVIDIA's container toolkit or GPU Operator, which create it;\n- if NVIDIA's runtime is the nodes' default: --set nvidiaRuntime.className=\n- if there is none: --set nvidiaRuntime.enabled=false (Weir's pods are then privileged)\n" $name) }}
{{- end }}
{{- end }}

{{/* How a profile's pods are scheduled: (list $ PROFILE). */}}
{{- define "weir.placement" -}}
{{- $top := index . 0 }}
{{- $profile := index . 1 }}
{{- with $top.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $top.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if and $top.Values.nvidiaRuntime.enabled $top.Values.nvidiaRuntime.className }}
runtimeClassName: {{ $top.Values.nvidiaRuntime.className }}
{{- end }}
{{- with $profile.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $profile.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $top.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Name of the DaemonSet that runs the MPS daemons of a profile's nodes. */}}
{{- define "weir.mpsLabels" -}}
app.kubernetes.io/name: {{ include "weir.name" (index . 0) }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: mps
weir.dev/profile: {{ (index . 1).label | quote }}
{{- end }}
