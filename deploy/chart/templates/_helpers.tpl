{{- define "berth.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Takes a list: the root context, and the name of a component. */}}
{{- define "berth.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "berth.labels" -}}
{{- $root := index . 0 -}}
{{ include "berth.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end }}

{{/* Only root of the node can get more rights than the image's user. */}}
{{- define "berth.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "berth.containerSecurity" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: { drop: [ALL] }
{{- end }}

{{/* Takes a list: the root context, the names of required keys of the Secret, and of optional keys. */}}
{{- define "berth.secrets" -}}
{{- $root := index . 0 -}}
{{- range index . 1 }}
{{- /* An embedded node with its blocks in S3 has no address. */}}
{{- $isOptional := and (hasPrefix "IPFS_" .) $root.Values.settings.BERTH_BLOCKS_S3_URL }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ $root.Values.existingSecret }}, key: {{ . }}{{ if $isOptional }}, optional: true{{ end }} } }
{{- end }}
{{- range index . 2 }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ $root.Values.existingSecret }}, key: {{ . }}, optional: true } }
{{- end }}
{{- end }}

{{/* Takes a list: the root context, and a Secret with more environment variables, or none. */}}
{{- define "berth.envFrom" -}}
{{- $secrets := compact (list (index . 0).Values.s3.environmentSecret (index . 1)) -}}
{{- with $secrets }}
envFrom:
  {{- range uniq . }}
  - secretRef: { name: {{ . }} }
  {{- end }}
{{- end }}
{{- end }}

{{/* Not empty if unfinished uploads are in a bucket, so that web processes share no volume. */}}
{{- define "berth.uploadsInBucket" -}}
{{- $hasBucket := or .Values.web.uploads.bucket .Values.settings.BERTH_BLOCKS_S3_URL -}}
{{- if and $hasBucket (not .Values.web.uploads.existingClaim) }}true{{ end }}
{{- end }}

{{/* The settings of all roles. */}}
{{- define "berth.env" -}}
# A subfolder, because others in the pod's group may write to the volume's own folder.
- { name: BERTH_DATA_DIR, value: /var/lib/berth/own }
- { name: PORT, value: '3000' }
- { name: HOST, value: 0.0.0.0 }
- { name: PUBLIC_URL, value: {{ .Values.publicUrl | quote }} }
- { name: BERTH_HEALTH_PORT, value: '3000' }
- { name: BERTH_METRICS_PORT, value: {{ ternary "9464" "" .Values.metrics.enabled | quote }} }
- { name: BERTH_METRICS_HOST, value: 0.0.0.0 }
- { name: BERTH_TLS_ASK, value: {{ ternary "0.0.0.0:3131" "" .Values.tlsAsk.enabled | quote }} }
- { name: BERTH_AGENT_PROXY_PORT, value: '3130' }
- { name: BERTH_AGENT_PROXY_ADDRESS, value: 0.0.0.0 }
- { name: BERTH_EGRESS_PORT, value: '3128' }
- { name: BERTH_EGRESS_HOST, value: 0.0.0.0 }
- { name: BERTH_RUNTIME, value: kubernetes }
{{- if .Values.agents.enabled }}
- { name: BERTH_AGENT_PROXY_URL, value: 'http://{{ .Release.Name }}-agent-proxy:3130' }
- { name: BERTH_EGRESS_URL, value: 'http://{{ .Release.Name }}-agent-proxy:3128' }
- { name: BERTH_AGENT_SUBNETS, value: {{ .Values.agents.podNetwork }} }
- { name: BERTH_ENGINE_IMAGE, value: {{ .Values.agents.engineImage | quote }} }
- { name: BERTH_KUBERNETES_NAMESPACE, value: {{ .Values.agents.namespace }} }
- name: BERTH_KUBERNETES_PROXY
  value: |
    namespace: {{ .Release.Namespace | quote }}
    labels: { app.kubernetes.io/instance: {{ .Release.Name | quote }}, app.kubernetes.io/component: agent-proxy }
{{- end }}
{{- range $name, $value := .Values.settings }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{/* Takes a list: the root context, and the values of a role. */}}
{{- define "berth.placement" -}}
{{- $root := index . 0 -}}
{{- $of := index . 1 -}}
# Variables of Services, such as BERTH_WEB_PORT, would look like unknown settings to Berth.
enableServiceLinks: false
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $of.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $of.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $of.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* `/healthz` only reports that the process runs; `/readyz` checks its parts. */}}
{{- define "berth.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: health }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: health }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
# Other pods' NetworkPolicies, such as an agent's, let a new pod in some seconds after it has its address.
readinessProbe:
  httpGet: { path: /readyz, port: health }
  initialDelaySeconds: 5
  periodSeconds: 2
  timeoutSeconds: 5
  # One slow check of PostgreSQL or Redis counts twice, because its result is cached for two seconds.
  failureThreshold: 4
{{- end }}

{{- define "berth.host" -}}
{{ (urlParse .Values.publicUrl).hostname }}
{{- end }}
