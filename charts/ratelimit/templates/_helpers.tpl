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

{{- define "ratelimit.dnsEgress" -}}
- ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
{{- end }}

{{/* Calls of AWS, as rules of egress. */}}
{{- define "ratelimit.awsEgress" -}}
{{ include "ratelimit.dnsEgress" . }}
{{ include "ratelimit.awsCalls" . }}
{{- end }}

{{- define "ratelimit.awsCalls" -}}
- ports: [{protocol: TCP, port: 443}] # DynamoDB, S3 and STS
- to: # the agent of EKS Pod Identity
  - ipBlock: {cidr: 169.254.170.23/32}
  - ipBlock: {cidr: "fd00:ec2::23/128"}
  ports: [{protocol: TCP, port: 80}]
{{- end }}

{{/* Calls of a Valkey or Redis server. Sentinels name the server's port when they are asked: it
is taken for 6379. */}}
{{- define "ratelimit.valkeyEgress" -}}
{{ include "ratelimit.dnsEgress" . }}
{{- $ports := list -}}
{{- range .Values.store.valkey.addresses -}}{{- $ports = append $ports (int (regexFind "[0-9]+$" .)) -}}{{- end -}}
{{- if .Values.store.valkey.master -}}{{- $ports = append $ports 6379 -}}{{- end }}
- ports:
  {{- range $ports | uniq }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
{{- end }}

{{/* The files of a Valkey or Redis server: each Secret is a directory, so that a changed one is read. */}}
{{- define "ratelimit.valkeyVolumes" -}}
{{- $volumes := list -}}
{{- with .Values.store.valkey -}}
{{- if eq $.Values.store.type "valkey" -}}
{{- range $name, $from := dict "server" .passwordSecret "sentinel" .sentinelPasswordSecret -}}
{{- if $from.name -}}
{{- $items := list (dict "key" $from.key "path" "password") -}}
{{- $volumes = append $volumes (dict "name" (printf "valkey-%s" $name) "path" (printf "/valkey/%s" $name) "secret" (dict "secretName" $from.name "items" $items)) -}}
{{- end -}}
{{- end -}}
{{- with .tls.secretName -}}
{{- $volumes = append $volumes (dict "name" "valkey-tls" "path" "/valkey/tls" "secret" (dict "secretName" .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $volumes -}}
{{- end }}

{{/* store.valkey of the configuration, as JSON. */}}
{{- define "ratelimit.valkeyConfig" -}}
{{- $v := .Values.store.valkey -}}
{{- $c := dict "addresses" $v.addresses "table" $v.table "create" $v.create "on_loss" $v.onLoss "durability" $v.durability "usage" $v.usage -}}
{{- with $v.master -}}{{- $_ := set $c "master" . -}}{{- end -}}
{{- with $v.database -}}{{- $_ := set $c "database" (int .) -}}{{- end -}}
{{- with $v.username -}}{{- $_ := set $c "username" . -}}{{- end -}}
{{- with $v.sentinelUsername -}}{{- $_ := set $c "sentinel_username" . -}}{{- end -}}
{{- if $v.passwordSecret.name -}}{{- $_ := set $c "password_file" "/valkey/server/password" -}}{{- end -}}
{{- if $v.sentinelPasswordSecret.name -}}{{- $_ := set $c "sentinel_password_file" "/valkey/sentinel/password" -}}{{- end -}}
{{- if $v.tls.enabled -}}
{{- $tls := dict -}}
{{- if $v.tls.secretName -}}{{- $_ := set $tls "ca" "/valkey/tls/ca.crt" -}}{{- end -}}
{{- if $v.tls.clientCertificate -}}{{- $tls = merge $tls (dict "cert" "/valkey/tls/tls.crt" "key" "/valkey/tls/tls.key") -}}{{- end -}}
{{- with $v.tls.serverName -}}{{- $_ := set $tls "name" . -}}{{- end -}}
{{- $_ := set $c "tls" $tls -}}
{{- end -}}
{{- toJson $c -}}
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
{{- else if .Values.admin.tls.secretName -}}
{{- $tls := dict "cert" "/admin-tls/tls.crt" "key" "/admin-tls/tls.key" -}}
{{- if .Values.admin.tls.clientCA -}}{{- $_ := set $tls "client_ca" "/admin-tls/ca.crt" -}}{{- end -}}
{{- $_ := set $server "admin" (dict "address" ":8082" "tls" $tls) -}}
{{- end -}}
{{- $store := dict "type" .Values.store.type -}}
{{- if eq .Values.store.type "dynamodb" -}}
{{- $table := dict "table" .Values.store.dynamodb.table -}}
{{- with .Values.store.dynamodb.region -}}{{- $_ := set $table "region" . -}}{{- end -}}
{{- with .Values.store.dynamodb.endpoint -}}{{- $_ := set $table "endpoint" . -}}{{- end -}}
{{- $_ := set $store "dynamodb" $table -}}
{{- else if eq .Values.store.type "valkey" -}}
{{- $_ := set $store "valkey" (fromJson (include "ratelimit.valkeyConfig" .)) -}}
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
{{- $_ := set $server "admin" (omit $server.admin "tokens" "proxy") -}}
{{- end -}}
{{- $timeout := dig "decision" "timeout" "" $config -}}
{{- $webhook := dig "budgets" "webhook" "" $config -}}
{{- $log := omit (get $config "log" | default dict) "denials" -}}
{{- list $server $config.store (get $config "xds") (get $config "mirror") $timeout (get $config "cache") (get $config "audit") $webhook $config.drain $log | toJson | sha256sum -}}
{{- end }}
