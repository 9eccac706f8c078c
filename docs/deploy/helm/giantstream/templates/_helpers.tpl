{{- define "giantstream.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "giantstream.labels" -}}
app.kubernetes.io/name: giantstream
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "giantstream.secret" -}}
{{- .Values.secret.existing | default (include "giantstream.name" .) -}}
{{- end -}}

{{- /* The port of config.http.listen, which probes and scrapers need. */ -}}
{{- define "giantstream.port" -}}
{{- $listen := ((.Values.config).http).listen | default "" -}}
{{- $port := regexFind "[0-9]+$" $listen -}}
{{- if not $port -}}
{{- fail "config.http.listen must be an address with a port, such as 0.0.0.0:9464: the probes ask there" -}}
{{- end -}}
{{- if regexMatch "^(127\\.|localhost|\\[::1\\])" $listen -}}
{{- fail "config.http.listen is on loopback, where no probe can reach it: use 0.0.0.0" -}}
{{- end -}}
{{- $port -}}
{{- end -}}

{{- define "giantstream.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if (($config).http).tls -}}
{{- fail "config.http.tls names files that no pod has: name a Secret in tls.secret, which the chart mounts" -}}
{{- end -}}
{{- if .Values.tls.secret -}}
{{- $files := dict "cert_file" "/etc/giantstream-tls/tls.crt" "key_file" "/etc/giantstream-tls/tls.key" -}}
{{- $_ := set $config.http "tls" $files -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "giantstream.scheme" -}}
{{- if .Values.tls.secret }}https{{ else }}http{{ end -}}
{{- end -}}
