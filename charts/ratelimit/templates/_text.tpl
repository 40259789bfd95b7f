{{/* Helm reads YAML 1.1, and the service YAML 1.2. Text without quotes that Helm takes for a
number or a boolean, such as 0123 or no, would be another value in the pods: it is refused. */}}

{{/* Refuses a `value` that is no text; `at` is its path. */}}
{{- define "ratelimit.text" -}}
{{- $at := .at -}}
{{- if kindIs "map" .value -}}
{{- include "ratelimit.textKeys" . -}}
{{- range $key, $value := .value -}}
{{- include "ratelimit.text" (dict "at" (printf "%s.%s" $at $key) "value" $value) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $i, $value := .value -}}
{{- include "ratelimit.text" (dict "at" (printf "%s[%d]" $at $i) "value" $value) -}}
{{- end -}}
{{- else if not (or (kindIs "string" .value) (kindIs "invalid" .value)) -}}
{{- fail (printf "%s: Helm reads it as %v: write it in quotes" $at .value) -}}
{{- end -}}
{{- end }}

{{/* Refuses keys that Helm makes of on, off, yes and no. */}}
{{- define "ratelimit.textKeys" -}}
{{- $at := .at -}}
{{- range $key, $_ := .value -}}
{{- if has $key (list "true" "false") -}}
{{- fail (printf "%s: has the key %q, as Helm reads on, yes, off and no: write the key in quotes" $at $key) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Refuses texts of the configuration `value` without their quotes. */}}
{{- define "ratelimit.textConfig" -}}
{{- $domains := get .value "domains" -}}
{{- range $i, $domain := ternary $domains list (kindIs "slice" $domains) -}}
{{- if kindIs "map" $domain -}}
{{- $at := printf "config.domains[%d]" $i -}}
{{- range $key := list "domain" "namespace" "resources" -}}
{{- include "ratelimit.text" (dict "at" (printf "%s.%s" $at $key) "value" (get $domain $key)) -}}
{{- end -}}
{{- include "ratelimit.textRules" (dict "at" $at "value" (get $domain "rules")) -}}
{{- end -}}
{{- end -}}
{{- $limits := get .value "limits" -}}
{{- if kindIs "map" $limits -}}
{{- $resources := get $limits "resources" -}}
{{- include "ratelimit.textKeys" (dict "at" "config.limits.resources" "value" (ternary $resources dict (kindIs "map" $resources))) -}}
{{- end -}}
{{- end }}

{{/* The same of the rules `value` of the domain at the path `at`. */}}
{{- define "ratelimit.textRules" -}}
{{- $at := .at -}}
{{- range $i, $rule := ternary .value list (kindIs "slice" .value) -}}
{{- if kindIs "map" $rule -}}
{{- range $key := list "name" "match" "entity" "resource" "resources" -}}
{{- include "ratelimit.text" (dict "at" (printf "%s.rules[%d].%s" $at $i $key) "value" (get $rule $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
