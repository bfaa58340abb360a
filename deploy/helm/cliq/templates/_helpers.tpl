{{- define "cliq.name" -}}
{{- if contains "cliq" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-cliq{{ end }}
{{- end }}

{{- define "cliq.selector" -}}
app.kubernetes.io/name: cliq-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cliq.labels" -}}
{{ include "cliq.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "cliq.claim" -}}
{{- .Values.claim.existing | default (printf "%s-data" (include "cliq.name" .)) }}
{{- end }}

{{/* settings.json: what the chart decides, then what the values say. */}}
{{- define "cliq.settings" -}}
{{- $kubernetes := dict "enabled" true "image" .Values.runs.image "claim" (include "cliq.claim" .) "mount_path" "/data" "namespace" .Release.Namespace }}
{{- with .Values.runs.env }}{{ $_ := set $kubernetes "env" . }}{{ end }}
{{- $kubernetes = mergeOverwrite $kubernetes .Values.runs.settings }}
{{- $hosts := list (include "cliq.name" .) (printf "%s.%s" (include "cliq.name" .) .Release.Namespace) (printf "%s.%s.svc" (include "cliq.name" .) .Release.Namespace) }}
{{- if .Values.ingress.enabled }}{{ $hosts = append $hosts .Values.ingress.host }}{{ end }}
{{- $server := dict "workspace_root" "/data/workspaces" "shared_workspaces" true "recovery" "resume" "allowed_hosts" $hosts }}
{{- $settings := dict "kubernetes" $kubernetes "server" $server }}
{{- with .Values.reviews.token }}
{{- $_ := set $settings "hug" (dict "server_url" (printf "http://%s.%s.svc:%v" (include "cliq.name" $) $.Release.Namespace $.Values.service.port) "token" .) }}
{{- end }}
{{- mergeOverwrite $settings .Values.settings | toPrettyJson }}
{{- end }}
