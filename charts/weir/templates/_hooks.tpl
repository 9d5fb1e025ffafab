{{/* Parts of hooks. Annotations: EVENTS. */}}
{{- define "weir.hook" }}
    helm.sh/hook: {{ . }}
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end }}

{{/* Hooks that remove Weir from nodes which have its image: they must not need the registry again. */}}
{{- define "weir.hookPullPolicy" -}}
{{ ternary "Never" "IfNotPresent" (eq .Values.image.pullPolicy "Never") }}
{{- end }}

{{/* Labels: (list $ COMPONENT). */}}
{{- define "weir.hookLabels" }}
{{- $top := index . 0 }}
    app.kubernetes.io/name: {{ include "weir.name" $top }}
    app.kubernetes.io/instance: {{ $top.Release.Name }}
    app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* An account that may remove labels from nodes while the hook runs: (list $ NAME COMPONENT EVENTS). */}}
{{- define "weir.unlabelAccount" }}
{{- $top := index . 0 }}
{{- $name := index . 1 }}
{{- $labels := include "weir.hookLabels" (list $top (index . 2)) }}
{{- $hook := include "weir.hook" (index . 3) -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $top.Release.Namespace }}
  labels: {{- $labels }}
  annotations:
    {{- $hook }}
    helm.sh/hook-weight: "-2"
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels: {{- $labels }}
  annotations:
    {{- $hook }}
    helm.sh/hook-weight: "-2"
rules:
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- $labels }}
  annotations:
    {{- $hook }}
    helm.sh/hook-weight: "-2"
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ $top.Release.Namespace }}
{{- end }}

{{/* The container that removes the labels, for a Job's pod. */}}
{{- define "weir.unlabelContainer" }}
      - name: unlabel
        image: {{ include "weir.image" (list . .Values.image.plugin) }}
        imagePullPolicy: {{ include "weir.hookPullPolicy" . }}
        command: [/usr/local/bin/unlabel-nodes.sh]
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          runAsNonRoot: true
          runAsUser: 65534
          capabilities: {drop: [ALL]}
          seccompProfile: {type: RuntimeDefault}
{{- end }}
