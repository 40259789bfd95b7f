{{/* The pod, the same of the Deployment and of the StatefulSet. */}}
{{- define "ratelimit.pod" -}}
{{- $name := include "ratelimit.fullname" . -}}
{{- $durable := .Values.persistence.enabled -}}
{{- $secrets := fromJsonArray (include "ratelimit.valkeyVolumes" .) -}}
metadata:
  labels:
    {{- include "ratelimit.selectorLabels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # of the settings that count at a start only: a change of the others is a reload
    checksum/restart: {{ include "ratelimit.restartHash" . }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "ratelimit.serviceAccountName" . }}
  # the service never calls Kubernetes; IRSA and Pod Identity bring tokens of their own
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  # The drain; four steps of at most 5s each (calls, administration, HTTP, pending charges).
  # Then two stores of at most 4s each, 1s for the last spans, and some to spare.
  terminationGracePeriodSeconds: {{ add (int .Values.drainSeconds) 35 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
  - name: ratelimit
    image: {{ include "ratelimit.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [serve, --config, /etc/ratelimit/ratelimit.yaml]
    env:
    # a directory that the service makes: Kubernetes lets every user write the volume's top
    - {name: RATELIMIT_RUN_DIR, value: /run/ratelimit/own}
    {{- with .Values.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    ports:
    - {name: grpc, containerPort: 8081}
    - {name: http, containerPort: 8080}
    {{- if .Values.admin.tls.secretName }}
    - {name: admin, containerPort: 8082}
    {{- end }}
    # the start waits for the table and for credentials, up to 20s
    startupProbe:
      {{- if .Values.tls.secretName }}
      httpGet: {path: /readyz, port: http}
      {{- else }}
      grpc: {port: 8081}
      {{- end }}
      periodSeconds: 2
      timeoutSeconds: 2
      failureThreshold: 30
    livenessProbe:
      httpGet: {path: /healthz, port: http}
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet: {path: /readyz, port: http}
      periodSeconds: 5
      timeoutSeconds: 3
      failureThreshold: 2
    resources:
      {{- toYaml .Values.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
    # a directory, without subPath: a changed ConfigMap swaps a link in it, and is read
    - {name: config, mountPath: /etc/ratelimit, readOnly: true}
    - {name: run, mountPath: /run/ratelimit}
    {{- if $durable }}
    - {name: data, mountPath: {{ include "ratelimit.volumePath" . }}}
    {{- end }}
    {{- if .Values.tls.secretName }}
    - {name: tls, mountPath: /tls, readOnly: true}
    {{- end }}
    {{- if .Values.admin.tls.secretName }}
    - {name: admin-tls, mountPath: /admin-tls, readOnly: true}
    {{- end }}
    {{- range $volume := $secrets }}
    - {name: {{ $volume.name }}, mountPath: {{ $volume.path }}, readOnly: true}
    {{- end }}
    {{- range $i, $mount := .Values.secretMounts }}
    - {name: secret-{{ $i }}, mountPath: {{ $mount.mountPath | quote }}, readOnly: true}
    {{- end }}
  volumes:
  - name: config
    configMap: {name: {{ $name }}}
  - name: run
    emptyDir: {sizeLimit: 1Mi}
  {{- with .Values.tls.secretName }}
  - name: tls
    secret: {secretName: {{ . | quote }}}
  {{- end }}
  {{- with .Values.admin.tls.secretName }}
  - name: admin-tls
    secret: {secretName: {{ . | quote }}}
  {{- end }}
  {{- range $volume := $secrets }}
  - name: {{ $volume.name }}
    secret: {{ $volume.secret | toJson }}
  {{- end }}
  {{- range $i, $mount := .Values.secretMounts }}
  - name: secret-{{ $i }}
    secret: {secretName: {{ $mount.secretName | quote }}}
  {{- end }}
  {{- if ne .Values.store.type "embedded" }}
  {{- include "ratelimit.spread" . | nindent 2 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "ratelimit.spread" -}}
{{- $constraints := list -}}
{{- range $key, $when := dict "topology.kubernetes.io/zone" .Values.topologySpread.zone "kubernetes.io/hostname" .Values.topologySpread.node -}}
{{- if ne $when "off" -}}
{{- $constraints = append $constraints (dict "maxSkew" 1 "topologyKey" $key "whenUnsatisfiable" $when
  "labelSelector" (dict "matchLabels" (fromYaml (include "ratelimit.selectorLabels" $))) "matchLabelKeys" (list "pod-template-hash")) -}}
{{- end -}}
{{- end -}}
{{- if $constraints -}}
topologySpreadConstraints:
{{ toYaml $constraints }}
{{- end -}}
{{- end }}
