{{/* Parts of the policies for pods that ask for shares. */}}

{{/* Version of the API with MutatingAdmissionPolicy; empty: `admission.place` is off, or there is none. */}}
{{- define "weir.placeVersion" -}}
{{- if and .Values.admission.place .Values.rbac.create }}
{{- range list "v1" "v1beta1" }}
{{- if $.Capabilities.APIVersions.Has (printf "admissionregistration.k8s.io/%s/MutatingAdmissionPolicy" .) }}{{ . }} {{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* "true": the agent labels its own pod, also where users must write the anti-affinity themselves. */}}
{{- define "weir.labelsOwnPod" -}}
{{- if and .Values.admission.place .Values.rbac.create (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) }}true{{ end }}
{{- end }}

{{/* "true": pods wait on a node for room, and its agent may delete them. */}}
{{- define "weir.waits" -}}
{{- if and .Values.admission.wait .Values.rbac.create (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) }}true{{ end }}
{{- end }}

{{/* The annotations' names, as JSON. */}}
{{- define "weir.annotations" -}}
{{- $levels := (include "weir.configFile" (list . "agent" dict) | fromYaml).levels }}
{{- dict "priority" (default "weir.dev/priority" $levels.annotation)
  "latency" (default "weir.dev/latency-slo" $levels.latencyAnnotation)
  "memory" (default "weir.dev/memory" $levels.memoryAnnotation)
  "weight" (default "weir.dev/weight" $levels.weightAnnotation)
  "yield" (default "weir.dev/yield" $levels.yieldAnnotation)
  "rate" (default "weir.dev/min-rate" $levels.minRateAnnotation)
  "full" (default "weir.dev/memory-full" $levels.memoryFullAnnotation)
  "compute" (default "weir.dev/compute-limit" $levels.computeAnnotation) | toJson }}
{{- end }}

{{/* CEL: the containers of `variables.pod` that ask for shares. */}}
{{- define "weir.asking" -}}
(variables.pod.spec.containers + variables.pod.spec.?initContainers.orValue([])).filter(c, c.?resources.?limits[?{{ .Values.resourceName | quote }}].hasValue())
{{- end }}

{{/* CEL: the metadata of a pod or of a workload's template: (list "object"). */}}
{{- define "weir.notesOf" -}}
{{- $object := index . 0 -}}
({{ $object }}.?spec.?template.hasValue() ? {{ $object }}.spec.template.?metadata.?annotations.orValue({}) : {{ $object }}.metadata.?annotations.orValue({}))
{{- end }}

{{/* CEL: the terms of a pod's anti-affinity: nodes where Weir's pod has less free than `variables.part`, `.gpus`. Maps,
because the API server of Kubernetes 1.34 panics when a patch's value is a list of `Object`s. */}}
{{- define "weir.stayAway" -}}
{{- $namespace := .Release.Namespace }}
{{- $terms := list }}
{{- range $label, $least := dict "weir.dev/largest-free" "variables.part" "weir.dev/free-gpus" "variables.gpus" }}
{{- $expression := printf "{\"key\": dyn(%q), \"operator\": dyn(\"In\"), \"values\": dyn(variables.numbers.filter(n, n < %s).map(n, string(n)))}" $label $least }}
{{- $terms = append $terms (printf "(%s == 0 ? [] : [{\"topologyKey\": dyn(\"kubernetes.io/hostname\"), \"namespaces\": dyn([%q]), \"labelSelector\": dyn({\"matchExpressions\": [%s]})}])" $least $namespace $expression) }}
{{- end }}
{{- join " + " $terms }}
{{- end }}
