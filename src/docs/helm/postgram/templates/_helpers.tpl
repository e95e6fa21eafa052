{{- define "postgram.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "postgram.image" -}}
{{- $repository := required "image.repository: is required; build the image and push it to a registry of yours" .Values.image.repository -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default (printf "v%s" .Chart.AppVersion)) -}}
{{- end -}}

{{/* Of a dict with root and role. */}}
{{- define "postgram.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end -}}

{{- define "postgram.labels" -}}
{{ include "postgram.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "postgram.cluster" -}}
{{ include "postgram.name" . }}-db
{{- end -}}

{{- define "postgram.caSecret" -}}
{{- if .Values.database.cluster.enabled -}}
{{ include "postgram.cluster" . }}-ca
{{- else -}}
{{ .Values.database.caSecret }}
{{- end -}}
{{- end -}}

{{/* The addresses of Postgres. The service does not get the owner's. Of a dict with root and isOwner. */}}
{{- define "postgram.databaseEnv" -}}
{{- $root := .root -}}
{{- if $root.Values.database.cluster.enabled -}}
{{- $place := printf "%s-rw:5432/postgram?sslrootcert=/etc/postgram/ca.crt" (include "postgram.cluster" $root) -}}
- name: SERVICE_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ $root.Values.existingSecret }}
      key: SERVICE_PASSWORD
- name: DATABASE_URL
  value: postgres://postgram_app:$(SERVICE_PASSWORD)@{{ $place }}
{{- if .isOwner }}
- name: OWNER_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "postgram.cluster" $root }}-app
      key: password
- name: MIGRATE_DATABASE_URL
  value: postgres://postgram_owner:$(OWNER_PASSWORD)@{{ $place }}
{{- end }}
{{- else -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ $root.Values.existingSecret }}
      key: DATABASE_URL
{{- if .isOwner }}
- name: MIGRATE_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ $root.Values.ownerSecret }}
      key: MIGRATE_DATABASE_URL
{{- end }}
{{- end -}}
{{- end -}}

{{/* What all pods have. */}}
{{- define "postgram.pod" -}}
automountServiceAccountToken: false
# Variables for each Service of the namespace would be settings of Postgram if a Service has its name.
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  seccompProfile:
    type: RuntimeDefault
{{- with include "postgram.caSecret" . }}
volumes:
  - name: ca
    secret:
      secretName: {{ . }}
      items:
        - key: ca.crt
          path: ca.crt
{{- end }}
{{- with .Values.pod }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What all containers have. */}}
{{- define "postgram.container" -}}
image: {{ include "postgram.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- if include "postgram.caSecret" . }}
volumeMounts:
  - name: ca
    mountPath: /etc/postgram
    readOnly: true
{{- end }}
{{- end -}}
