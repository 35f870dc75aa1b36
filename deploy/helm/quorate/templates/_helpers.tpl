{{/* Sets the defaults of each section of the values that is null. Every template includes it first, because
Helm may render any of them first. */}}
{{- define "quorate.complete" -}}
{{- range $path, $default := .Files.Get "files/sections.yaml" | fromYaml -}}
{{- $keys := splitList "." $path -}}
{{- $inner := $.Values -}}
{{- range initial $keys -}}
{{- $inner = get $inner . -}}
{{- end -}}
{{- if not (kindIs "map" (get $inner (last $keys))) -}}
{{- $_ := set $inner (last $keys) $default -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "quorate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* 50 characters leave room for the endings of names and for the ordinals of pods. */}}
{{- define "quorate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "quorate.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "quorate.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "quorate.selector" -}}
app.kubernetes.io/name: {{ include "quorate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "quorate.controllers" -}}
{{ include "quorate.selector" . }}
app.kubernetes.io/component: controller
{{- end -}}

{{/* `commonLabels` may replace two of the labels: the version, and part-of. */}}
{{- define "quorate.labels" -}}
{{- $chart := dict "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $whole := dict "app.kubernetes.io/version" (.Values.image.tag | default .Chart.AppVersion | trunc 63) "app.kubernetes.io/part-of" "quorate" -}}
{{- merge (dict) $chart (include "quorate.selector" . | fromYaml) (.Values.commonLabels | default dict) $whole | toYaml -}}
{{- end -}}

{{/* Labels of a pod: (dict "root" $ "component" "c" "more" (dict)). */}}
{{- define "quorate.podLabels" -}}
{{- merge (dict) (include "quorate.selector" .root | fromYaml) (dict "app.kubernetes.io/component" .component) (.more | default dict) | toYaml -}}
{{- end -}}

{{/* Labels and annotations of the pod template of a Job. */}}
{{- define "quorate.jobMetadata" -}}
labels:
  {{- include "quorate.podLabels" (dict "root" .root "component" .component "more" .root.Values.jobs.podLabels) | nindent 2 }}
{{- with .root.Values.jobs.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Scheduling of the controllers, which also applies to the other pods. */}}
{{- define "quorate.scheduling" -}}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The same, with the controllers' node affinity. Their pod affinity is not used: it is about controllers. */}}
{{- define "quorate.jobScheduling" -}}
{{- include "quorate.scheduling" . }}
{{- with (.Values.affinity | default dict).nodeAffinity }}
affinity:
  nodeAffinity:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{/* Metadata of an object: (dict "root" $ "suffix" "-x" "component" "c" "annotations" (dict)).
"length" is the most characters of the name before the suffix: a CronJob's name has 52 at most. */}}
{{- define "quorate.metadata" -}}
name: {{ include "quorate.fullname" .root | trunc (.length | default 50 | int) | trimSuffix "-" }}{{ .suffix | default "" }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- $component := .component | empty | ternary dict (dict "app.kubernetes.io/component" .component) }}
  {{- merge (dict) (.labels | default dict) $component (include "quorate.labels" .root | fromYaml) | toYaml | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The registry in this chart's values, else the global one of a parent chart. */}}
{{- define "quorate.registry" -}}
{{- .Values.image.registry | default (.Values.global | default dict).imageRegistry | default "" -}}
{{- end -}}

{{- define "quorate.image" -}}
{{- $image := .Values.image -}}
{{- with include "quorate.registry" . }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}

{{/* The image with Spark: the same registry, and by default the same tag. */}}
{{- define "quorate.pipelineImage" -}}
{{- $image := .Values.pipeline.image -}}
{{- with include "quorate.registry" . }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- define "quorate.pullSecrets" -}}
{{- $names := .Values.image.pullSecrets | default list }}
{{- range (.Values.global | default dict).imagePullSecrets }}
{{- $names = append $names (kindIs "map" . | ternary (get (kindIs "map" . | ternary . dict) "name") .) }}
{{- end }}
{{- with $names | uniq }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "quorate.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "quorate.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The suffix of the Services' names in this namespace. Without clusterDomain it ends in .svc, which every
pod can resolve. */}}
{{- define "quorate.domain" -}}
{{ .Release.Namespace }}.svc{{ with .Values.clusterDomain }}.{{ . }}{{ end }}
{{- end -}}

{{/* The domain below which each pod has a name of its own. */}}
{{- define "quorate.podDomain" -}}
{{ include "quorate.fullname" . }}-headless.{{ include "quorate.domain" . }}
{{- end -}}

{{- define "quorate.serviceHost" -}}
{{ include "quorate.fullname" . }}.{{ include "quorate.domain" . }}
{{- end -}}

{{/* The IP families of every Service. */}}
{{- define "quorate.ipFamilies" -}}
{{- with .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.service.ipFamilies }}
ipFamilies: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* The servers that a new controller asks for the leader. The list does not depend on the number of
replicas, so that scaling does not change the pod template. Voters are known from the log, and the Service
reaches all others. */}}
{{- define "quorate.bootstrapServers" -}}
{{- $servers := list -}}
{{- range $ordinal := until 3 -}}
{{- $servers = append $servers (printf "%s-%d.%s:9094" (include "quorate.fullname" $) $ordinal (include "quorate.podDomain" $)) -}}
{{- end -}}
{{- append $servers (printf "%s:9094" (include "quorate.serviceHost" .)) | join "," -}}
{{- end -}}

{{/* The cluster id. It is generated once, and not if pods or a disk exist that have one. The id in the
bootstrap record, the id that was generated earlier and the value clusterId must be the same. */}}
{{- define "quorate.clusterId" -}}
{{- $full := include "quorate.fullname" . -}}
{{- $name := printf "%s-cluster" $full -}}
{{- $known := "" -}}
{{- $from := "" -}}
{{- range $each := list (printf "%s-bootstrap" $full) $name -}}
{{- with ((lookup "v1" "ConfigMap" $.Release.Namespace $each).data | default dict).clusterId -}}
{{- if not (regexMatch "^[A-Za-z0-9_][A-Za-z0-9_-]{20}[AQgw]$" .) -}}
{{- fail (printf "ConfigMap %s has the clusterId %q, which is none: it has 22 characters; write that of the disks there" $each .) -}}
{{- end -}}
{{- if and $known (ne $known .) -}}
{{- fail (printf "ConfigMap %s says that this quorum is %s, and ConfigMap %s says %s: write that of the disks into both" $from $known $each .) -}}
{{- end -}}
{{- $known = . -}}
{{- $from = $from | default $each -}}
{{- end -}}
{{- end -}}
{{- if and .Values.clusterId $known (ne .Values.clusterId $known) -}}
{{- fail (printf "clusterId is %s, but ConfigMap %s says that this quorum is %s: leave clusterId out, or install under another name" .Values.clusterId $from $known) -}}
{{- end -}}
{{- if not (or $known .Values.clusterId) -}}
{{- $command := printf "kubectl --namespace %s exec %s-0 -c controller -- grep cluster.id /var/lib/quorate/metadata/meta.properties" .Release.Namespace $full -}}
{{- if include "quorate.live" . | fromJson -}}
{{- fail (printf "clusterId: StatefulSet %s is there, but ConfigMap %s, which has the id of its quorum, is not. Give clusterId: %s" $full $name $command) -}}
{{- end -}}
{{- if ne (include "quorate.pods" .) "0" -}}
{{- fail (printf "clusterId: pods of %s are there, but ConfigMap %s, which has the id of their quorum, is not. Give clusterId: %s" $full $name $command) -}}
{{- end -}}
{{- if lookup "v1" "PersistentVolumeClaim" .Release.Namespace (printf "data-%s-0" $full) -}}
{{- fail (printf "clusterId: claim data-%s-0 is there, but ConfigMap %s, which has the id of its quorum, is not. Give clusterId, as cluster.id in metadata/meta.properties on that disk has it, or delete the claims to begin with empty disks" $full $name) -}}
{{- end -}}
{{- /* Without a cluster, `lookup` finds nothing. Every namespace has this ConfigMap, and an account that reads
ConfigMaps may read it. The lookup of kube-system is for a namespace that Helm has yet to create. */ -}}
{{- if not (or (lookup "v1" "ConfigMap" .Release.Namespace "kube-root-ca.crt") (lookup "v1" "Namespace" "" "kube-system")) -}}
{{- fail "clusterId is needed where the chart is rendered without a cluster: give it what `quorate storage random-uuid` prints, or have helm ask the cluster with --dry-run=server" -}}
{{- end -}}
{{- end -}}
{{- $known | default .Values.clusterId | default (printf "%s%s" (randAlpha 1) (randAlphaNum 20) | printf "%sQ") -}}
{{- end -}}

{{/* The existing StatefulSet as JSON; {} if it does not exist, or if `lookup` has no cluster. */}}
{{- define "quorate.live" -}}
{{- lookup "apps/v1" "StatefulSet" .Release.Namespace (include "quorate.fullname" .) | default dict | toJson -}}
{{- end -}}

{{/* One more than the highest ordinal of this release's controller pods that are not terminating. */}}
{{- define "quorate.pods" -}}
{{- $count := 0 -}}
{{- $name := include "quorate.fullname" . -}}
{{- range (lookup "v1" "Pod" .Release.Namespace "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- if and (not .metadata.deletionTimestamp) (eq (get $labels "app.kubernetes.io/instance") $.Release.Name) (eq (get $labels "app.kubernetes.io/component") "controller") (regexMatch (printf "^%s-[0-9]+$" $name) .metadata.name) -}}
{{- $count = max $count (trimPrefix (printf "%s-" $name) .metadata.name | int | add1) -}}
{{- end -}}
{{- end -}}
{{- $count -}}
{{- end -}}

{{/* The number of pods that remain of a StatefulSet that was deleted without its pods; 0 on installation. */}}
{{- define "quorate.orphans" -}}
{{- if .Release.IsUpgrade }}{{ include "quorate.pods" . }}{{ else }}0{{ end -}}
{{- end -}}

{{/* The number of controllers. The number that kubectl scale has set is kept, even while the StatefulSet is
created again for its remaining pods. The value replicaCount counts only for the first installation. */}}
{{- define "quorate.replicas" -}}
{{- $live := include "quorate.live" . | fromJson -}}
{{- if $live -}}
{{- $live.spec.replicas -}}
{{- else -}}
{{- include "quorate.orphans" . | int | default (.Values.replicaCount | default 1 | int) -}}
{{- end -}}
{{- end -}}

{{/* spec.replicas as it is rendered; "" leaves it out. The first installation decides if it is left out: if
one revision had it and the next one did not, Kubernetes would set it to 1. Each revision records the decision
for the next one in a ConfigMap. An annotation of the StatefulSet would not do: a user may restore an older
StatefulSet by hand. */}}
{{- define "quorate.renderedReplicas" -}}
{{- $live := include "quorate.live" . | fromJson -}}
{{- $kept := (lookup "v1" "ConfigMap" .Release.Namespace (printf "%s-cluster" (include "quorate.fullname" .))).data | default dict -}}
{{- $isLeftOut := eq ($kept.replicas | default "") "left-out" -}}
{{- if not $live -}}
{{- $isLeftOut = and (kindIs "invalid" .Values.replicaCount) (or .Release.IsInstall $isLeftOut) -}}
{{- if and $isLeftOut .Release.IsUpgrade -}}
{{- $isLeftOut = eq (include "quorate.orphans" .) "0" -}}
{{- end -}}
{{- end -}}
{{- if not $isLeftOut -}}{{ include "quorate.replicas" . }}{{- end -}}
{{- end -}}

{{- define "quorate.tlsSecret" -}}
{{- .Values.tls.existingSecret | default (printf "%s-tls" (include "quorate.fullname" .)) -}}
{{- end -}}

{{/* The domain in the names that the pods of the live StatefulSet advertise; "" for none. */}}
{{- define "quorate.liveDomain" -}}
{{- $live := include "quorate.live" . | fromJson -}}
{{- $before := printf ".%s-headless.%s.svc." (include "quorate.fullname" .) .Release.Namespace -}}
{{- range dig "spec" "template" "spec" "containers" list $live -}}
{{- range .env -}}
{{- if and (eq .name "QUORATE_ADVERTISED_LISTENERS") (contains $before (.value | default "")) -}}
{{- regexReplaceAll ":[0-9]+$" (splitList $before .value | last) "" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The DNS names by which peers, clients and containers of the same pod call controllers. Names with a domain
are included even without clusterDomain. If an upgrade changes the domain, the names with the previous one are
included, too, since controllers of the previous revision are called by them. */}}
{{- define "quorate.dnsNames" -}}
{{- $name := include "quorate.fullname" . -}}
{{- $namespace := .Release.Namespace -}}
{{- $full := printf "%s.svc.%s" $namespace (.Values.clusterDomain | default "cluster.local") -}}
{{- $before := list -}}
{{- with include "quorate.liveDomain" . -}}
{{- $older := printf "%s.svc.%s" $namespace . -}}
{{- $before = list (printf "*.%s-headless.%s" $name $older) (printf "%s-headless.%s" $name $older) (printf "%s.%s" $name $older) -}}
{{- end -}}
{{- $names := list (printf "*.%s-headless.%s" $name $full) (printf "*.%s-headless.%s.svc" $name $namespace) (printf "%s-headless.%s" $name $full) (printf "%s.%s" $name $full) (printf "%s.%s.svc" $name $namespace) (printf "%s.%s" $name $namespace) $name "localhost" -}}
{{- concat $names (.Values.tls.extraDnsNames | default list) $before | uniq | toJson -}}
{{- end -}}

{{/* A value as text for a properties file. Helm parses numbers as floating point, and Go writes those from a
million up with an exponent. */}}
{{- define "quorate.scalar" -}}
{{- $text := toJson . -}}
{{- if kindIs "string" . -}}{{ . }}
{{- else if and (kindIs "float64" .) (contains "e" $text) -}}{{ printf "%.18f" . | regexFind "^-?[0-9]+([.][0-9]*[1-9])?" }}
{{- else -}}{{ $text }}
{{- end -}}
{{- end -}}

{{/* A user's additional settings of a process, one a line. */}}
{{- define "quorate.properties" -}}
{{- $lines := list -}}
{{- range $key, $value := . -}}
{{- $lines = append $lines (printf "%s=%s" $key (include "quorate.scalar" $value)) -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{- define "quorate.nodeEnvironment" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: QUORATE_NODE_ID
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
- name: QUORATE_ADVERTISED_LISTENERS
  value: GRPC://$(POD_NAME).{{ include "quorate.podDomain" . }}:9094
{{- end -}}

{{/* The files of TLS as settings, for a process with one port and for tools. */}}
{{- define "quorate.tlsFiles" -}}
ssl.keystore.certificate.chain.location=/etc/quorate/tls/tls.crt
ssl.keystore.key.location=/etc/quorate/tls/tls.key
ssl.truststore.location=/etc/quorate/tls/ca.crt
{{- end -}}

{{- define "quorate.configMounts" -}}
- name: config
  mountPath: /etc/quorate/config
  readOnly: true
{{- if .Values.tls.enabled }}
- name: tls
  mountPath: /etc/quorate/tls
  readOnly: true
{{- end }}
{{- end -}}

{{- define "quorate.configVolumes" -}}
{{- include "quorate.configVolumesOf" (dict "root" . "secret" (include "quorate.tlsSecret" .)) -}}
{{- end -}}

{{/* The same for a process that presents the certificate in `secret`. */}}
{{- define "quorate.configVolumesOf" -}}
- name: config
  configMap:
    name: {{ include "quorate.fullname" .root }}
{{- if .root.Values.tls.enabled }}
- name: tls
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/* The token of the pod's account, for the one container that mounts it. */}}
{{- define "quorate.accountVolume" -}}
- name: account
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
{{- end -}}

{{/* The collector of spans and the attributes of this process. Users may add OpenTelemetry's other variables. */}}
{{- define "quorate.tracingEnvironment" -}}
{{- with .Values.tracing }}
{{- if .enabled }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .endpoint | quote }}
- name: QUORATE_TRACING_SERVICE_PREFIX
  value: {{ .servicePrefix | quote }}
- name: QUORATE_TRACING_FETCH_RATIO
  value: {{ include "quorate.scalar" .fetchRatio | quote }}
- name: QUORATE_TRACING_WRITE_RATIO
  value: {{ include "quorate.scalar" .writeRatio | quote }}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.namespace.name={{ $.Release.Namespace }},k8s.statefulset.name={{ include "quorate.fullname" $ }},k8s.pod.name=$(POD_NAME)
{{- end }}
{{- end }}
{{- end -}}
