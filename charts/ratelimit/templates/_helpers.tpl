{{/* The name of the chart, at most 63 letters. */}}
{{- define "ratelimit.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{/* The name of all objects, short enough for the suffixes of Kubernetes. */}}
{{- define "ratelimit.fullname" -}}
{{- $name := include "ratelimit.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "ratelimit.selectorLabels" -}}
app.kubernetes.io/name: {{ include "ratelimit.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ratelimit.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "ratelimit.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The aggregator's pods have a name of their own, so that no gateway calls them. */}}
{{- define "ratelimit.aggregatorSelector" -}}
app.kubernetes.io/name: {{ include "ratelimit.name" . | trunc 52 | trimSuffix "-" }}-aggregator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ratelimit.aggregatorLabels" -}}
{{- $own := fromYaml (include "ratelimit.aggregatorSelector" .) -}}
{{- toYaml (mergeOverwrite (fromYaml (include "ratelimit.labels" .)) $own) -}}
{{- end }}

{{/* Calls of AWS, as rules of egress. */}}
{{- define "ratelimit.awsEgress" -}}
- ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
- ports: [{protocol: TCP, port: 443}] # DynamoDB, S3 and STS
- to: # the agent of EKS Pod Identity
  - ipBlock: {cidr: 169.254.170.23/32}
  - ipBlock: {cidr: "fd00:ec2::23/128"}
  ports: [{protocol: TCP, port: 80}]
{{- end }}

{{- define "ratelimit.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "ratelimit.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "ratelimit.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end }}

{{/* Where the volume is, and the directory in it that the service makes for itself: the
volume's own top belongs to root. */}}
{{- define "ratelimit.volumePath" -}}/var/lib/ratelimit{{- end }}
{{- define "ratelimit.dataPath" -}}{{ include "ratelimit.volumePath" . }}/data{{- end }}

{{/* The user's configuration as an object, as JSON: a text is parsed. */}}
{{- define "ratelimit.userConfig" -}}
{{- $config := default dict .Values.config -}}
{{- if kindIs "string" $config -}}
{{- $config = fromYaml $config -}}
{{- if and (hasKey $config "Error") (not (hasKey $config "domains")) -}}
{{- fail (printf "config: is no YAML: %s" $config.Error) -}}
{{- end -}}
{{- end -}}
{{- toJson $config -}}
{{- end }}

{{/* The settings that count at a start only, as JSON. */}}
{{- define "ratelimit.ownConfig" -}}
{{- $grpc := dict "address" ":8081" -}}
{{- with .Values.tls -}}
{{- if .secretName -}}
{{- $tls := dict "cert" "/tls/tls.crt" "key" "/tls/tls.key" -}}
{{- if .clientCA -}}{{- $_ := set $tls "client_ca" "/tls/ca.crt" -}}{{- end -}}
{{- $_ := set $grpc "tls" $tls -}}
{{- end -}}
{{- end -}}
{{- $server := dict "grpc" $grpc "http" (dict "address" ":8080") -}}
{{- if not .Values.admin.enabled -}}
{{- $_ := set $server "admin" (dict "address" "off") -}}
{{- end -}}
{{- $store := dict "type" .Values.store.type -}}
{{- if eq .Values.store.type "dynamodb" -}}
{{- $table := dict "table" .Values.store.dynamodb.table -}}
{{- with .Values.store.dynamodb.region -}}{{- $_ := set $table "region" . -}}{{- end -}}
{{- with .Values.store.dynamodb.endpoint -}}{{- $_ := set $table "endpoint" . -}}{{- end -}}
{{- $_ := set $store "dynamodb" $table -}}
{{- else if .Values.persistence.enabled -}}
{{- $_ := set $store "embedded" (dict "data" (include "ratelimit.dataPath" .)) -}}
{{- end -}}
{{- toJson (dict "server" $server "store" $store "drain" (printf "%ds" (int .Values.drainSeconds))) -}}
{{- end }}

{{/* ratelimit.yaml, as JSON: the user's with the chart's settings over it. */}}
{{- define "ratelimit.config" -}}
{{- $own := fromJson (include "ratelimit.ownConfig" .) -}}
{{- $user := fromJson (include "ratelimit.userConfig" .) -}}
{{- $buckets := pick (dig "store" "embedded" dict $user) "max_buckets" -}}
{{- if $buckets -}}
{{- $_ := set $own.store "embedded" (merge (dig "embedded" dict $own.store) $buckets) -}}
{{- end -}}
{{- toJson (mergeOverwrite (omit $user "store") $own) -}}
{{- end }}

{{/* A hash of the settings that a reload leaves as they are: a change of it replaces the pods. */}}
{{- define "ratelimit.restartHash" -}}
{{- $config := fromJson (include "ratelimit.config" .) -}}
{{- $server := $config.server -}}
{{- if hasKey $server "admin" -}}
{{- $_ := set $server "admin" (omit $server.admin "tokens") -}}
{{- end -}}
{{- $timeout := dig "decision" "timeout" "" $config -}}
{{- $webhook := dig "budgets" "webhook" "" $config -}}
{{- $log := omit (get $config "log" | default dict) "denials" -}}
{{- list $server $config.store (get $config "xds") $timeout (get $config "cache") (get $config "audit") $webhook $config.drain $log | toJson | sha256sum -}}
{{- end }}
