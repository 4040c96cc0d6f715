{{/* The providers that the managers run, in the order of their names in the program, with commas in between. */}}
{{- define "ferrostack.providers" -}}
{{- $asked := .Values.providers -}}
{{- $found := list -}}
{{- range list "core" "bootstrap" "control-plane" "infrastructure" -}}
{{- if or (not $asked) (has . $asked) -}}
{{- $found = append $found . -}}
{{- end -}}
{{- end -}}
{{- join "," $found -}}
{{- end -}}

{{/* The end of the names of what managers of some providers have for themselves; empty for all providers. */}}
{{- define "ferrostack.suffix" -}}
{{- $providers := include "ferrostack.providers" . -}}
{{- if ne $providers "core,bootstrap,control-plane,infrastructure" -}}
-{{ $providers | replace "," "-" }}
{{- end -}}
{{- end -}}

{{/* The image with its tag, or with its digest. */}}
{{- define "ferrostack.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}
