{{/* Checks that a schema cannot express. One message reports all errors. */}}
{{- define "quorate.check" -}}
{{- $wrong := list -}}
{{- if eq (toString .Values.enabled) "false" -}}
{{- $wrong = append $wrong "enabled is false, which counts only as the condition of a chart that depends on this one: take it out, or name it there as the condition" -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "quorate.fullname" .)) -}}
{{- $wrong = append $wrong (printf "the name of the release makes Services %s, which Kubernetes refuses: begin it with a letter and use no dots, or give fullnameOverride" (include "quorate.fullname" .)) -}}
{{- end -}}
{{- if and (not (kindIs "invalid" .Values.replicaCount)) (lt (int .Values.replicaCount) 1) -}}
{{- $wrong = append $wrong "replicaCount is 0: a quorum needs at least one controller; choose 1, 3 or 5" -}}
{{- end -}}
{{- if and .Values.tls.existingSecret .Values.tls.certManager.enabled -}}
{{- $wrong = append $wrong "tls.existingSecret and tls.certManager.enabled are both set: choose one source of certificates" -}}
{{- end -}}
{{- if and .Values.tls.certManager.enabled (not (.Values.tls.certManager.issuerRef | default dict).name) -}}
{{- $wrong = append $wrong "tls.certManager.enabled needs tls.certManager.issuerRef.name: name an Issuer or a ClusterIssuer" -}}
{{- end -}}
{{- if and (or .Values.tls.existingSecret .Values.tls.certManager.enabled) (not .Values.tls.enabled) -}}
{{- $wrong = append $wrong "tls.enabled is false, but a source of certificates is given: set tls.enabled, or take the source away" -}}
{{- end -}}
{{- if and .Values.backup.enabled (not .Values.persistence.enabled) -}}
{{- $wrong = append $wrong "backup.enabled needs persistence.enabled: there is no disk to take a backup from" -}}
{{- end -}}
{{- with .Values.persistence.movedFrom -}}
{{- $hasId := $.Values.clusterId -}}
{{- range $ending := list "bootstrap" "cluster" -}}
{{- $hasId = or $hasId (lookup "v1" "ConfigMap" $.Release.Namespace (printf "%s-%s" (include "quorate.fullname" $) $ending)) -}}
{{- end -}}
{{- $own := printf "%s/%s" $.Release.Namespace (include "quorate.fullname" $) -}}
{{- if not $.Values.persistence.enabled -}}
{{- $wrong = append $wrong "persistence.movedFrom needs persistence.enabled: without it the pods keep no disks" -}}
{{- else if eq . $own -}}
{{- $wrong = append $wrong (printf "persistence.movedFrom is %s, which is this StatefulSet itself: take it out, its disks need none" .) -}}
{{- else if not $hasId -}}
{{- $wrong = append $wrong "persistence.movedFrom needs clusterId, that of the disks: ConfigMap NAME-cluster of the original has it, and cluster.id in metadata/meta.properties on each disk" -}}
{{- end -}}
{{- end -}}
{{- $replicas := int (include "quorate.replicas" .) -}}
{{- if and .Values.backup.enabled $replicas (ge (int .Values.backup.ordinal) $replicas) -}}
{{- $wrong = append $wrong (printf "backup.ordinal is %d, but the controllers are 0 to %d" (int .Values.backup.ordinal) (sub $replicas 1)) -}}
{{- end -}}
{{- if and .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled -}}
{{- $wrong = append $wrong "metrics.podMonitor.enabled and metrics.serviceMonitor.enabled are both set: every number would be counted twice, choose one" -}}
{{- end -}}
{{- if and .Values.tracing.enabled (not .Values.tracing.endpoint) -}}
{{- $wrong = append $wrong "tracing.enabled needs tracing.endpoint: name a collector of OTLP over gRPC, such as http://jaeger.observability.svc:4317" -}}
{{- end -}}
{{- if and .Values.tracing.endpoint (not .Values.tracing.enabled) -}}
{{- $wrong = append $wrong "tracing.enabled is false, but tracing.endpoint is given: set tracing.enabled, or take the endpoint away" -}}
{{- end -}}
{{- range $word := .Values.pipeline.report.arguments -}}
{{- $flag := regexFind "^--[a-z-]+" $word -}}
{{- if has $flag (list "--bootstrap-controller" "--command-config" "--html" "--path" "--master") -}}
{{- $wrong = append $wrong (printf "pipeline.report.arguments has %s, which is the chart's own: take it out" $flag) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.pipeline.report.arguments (not .Values.pipeline.report.enabled) -}}
{{- $wrong = append $wrong "pipeline.report.enabled is false, but pipeline.report.arguments are given: set pipeline.report.enabled, or take the arguments away" -}}
{{- end -}}
{{- with .Values.pipeline.report.existingSecret -}}
{{- if not (and $.Values.tls.enabled $.Values.pipeline.report.enabled) -}}
{{- $wrong = append $wrong "pipeline.report.existingSecret is given, which counts only with pipeline.report.enabled and tls.enabled: set both, or take the Secret away" -}}
{{- end -}}
{{- end -}}
{{- $name := include "quorate.fullname" . -}}
{{- $live := include "quorate.live" . | fromJson -}}
{{- if $live -}}
{{- $selects := dig "spec" "selector" "matchLabels" "app.kubernetes.io/name" "" $live -}}
{{- if and $selects (ne $selects (include "quorate.name" .)) -}}
{{- $wrong = append $wrong (printf "StatefulSet %s selects its pods by app.kubernetes.io/name=%s, which cannot be changed: give nameOverride=%s" $name $selects $selects) -}}
{{- end -}}
{{- else if and .Release.IsUpgrade (not .Values.allowRename) -}}
{{- range (lookup "apps/v1" "StatefulSet" .Release.Namespace "").items -}}
{{- $selects := dig "spec" "selector" "matchLabels" dict . -}}
{{- /* One release may contain this chart twice, under two aliases. */ -}}
{{- $isOfThis := regexMatch (printf "^%s-[0-9]" (regexQuoteMeta $.Chart.Name)) (dig "metadata" "labels" "helm.sh/chart" "" .) -}}
{{- if and $isOfThis (eq (get $selects "app.kubernetes.io/instance") $.Release.Name) (eq (get $selects "app.kubernetes.io/component") "controller") -}}
{{- $wrong = append $wrong (printf "this release runs as %s, and an empty quorum named %s would take its place: give fullnameOverride=%s, or allowRename=true if that is meant" .metadata.name $name .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $section, $labels := dict "podLabels" .Values.podLabels "jobs.podLabels" .Values.jobs.podLabels "operator.podLabels" .Values.operator.podLabels "commonLabels" .Values.commonLabels -}}
{{- $own := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" -}}
{{- if eq $section "commonLabels" -}}
{{- $own = concat $own (list "helm.sh/chart" "app.kubernetes.io/managed-by") -}}
{{- end -}}
{{- range $key := keys ($labels | default dict) | sortAlpha -}}
{{- if has $key $own -}}
{{- $wrong = append $wrong (printf "%s has %s, which is the chart's own: take it out" $section $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key := keys (.Values.commonAnnotations | default dict) | sortAlpha -}}
{{- if hasPrefix "quorate/" $key -}}
{{- $wrong = append $wrong (printf "commonAnnotations has %s, which is the operator's own: take it out" $key) -}}
{{- end -}}
{{- end -}}
{{- range $section, $values := dict "config" .Values.config "admin.config" .Values.admin.config "operator.config" .Values.operator.config -}}
{{- range $key, $value := $values -}}
{{- if not (regexMatch "^[A-Za-z0-9][A-Za-z0-9._-]*$" $key) -}}
{{- $wrong = append $wrong (printf "%s has the key %q: a key has letters, digits, dots, dashes and underscores" $section $key) -}}
{{- end -}}
{{- if regexMatch "[\\x00-\\x08\\x0a-\\x1f\\x7f\\x{85}\\x{2028}\\x{2029}]" (toString $value) -}}
{{- $wrong = append $wrong (printf "%s.%s is %q, which has a line feed or another control character: write it on one line" $section $key $value) -}}
{{- end -}}
{{- if hasSuffix "\\" (toString $value) -}}
{{- $wrong = append $wrong (printf "%s.%s is %q: a backslash at the end takes in the next line, take it out" $section $key $value) -}}
{{- end -}}
{{- if and (kindIs "float64" $value) (or (ge $value 9007199254740992.0) (le $value -9007199254740992.0)) -}}
{{- $wrong = append $wrong (printf "%s.%s is a number above 9007199254740992, of which not every digit is kept: put it in quotes" $section $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $section, $ours := include "quorate.ours" . | fromYaml -}}
{{- $values := (eq $section "config" | ternary $.Values (index $.Values (trimSuffix ".config" $section))).config -}}
{{- range $key := keys ($values | default dict) | sortAlpha -}}
{{- /* The operator gets its settings as environment variables, so a key has more than one spelling. */ -}}
{{- $spelled := eq $section "operator.config" | ternary ($key | lower | replace "_" ".") $key -}}
{{- if hasKey $ours $spelled -}}
{{- $wrong = append $wrong (printf "%s has %s, which is the chart's own: %s" $section $key (get $ours $spelled | default "take it out")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $wrong -}}
{{- fail (printf "\n%s" (join "\n" $wrong)) -}}
{{- end -}}
{{- end -}}

{{/* Settings that the chart writes itself, each with the value to use instead; "" if there is none. */}}
{{- define "quorate.ours" -}}
config:
  process.roles: ""
  node.id: ""
  metadata.log.dir: ""
  listeners: ""
  advertised.listeners: ""
  controller.listener.names: ""
  listener.security.protocol.map: set tls.enabled
  controller.quorum.bootstrap.servers: ""
  controller.quorum.voters: ""
  controller.quorum.auto.join.enable: set operator.enabled
  controller.quorum.election.timeout.ms: set quorum.electionTimeoutMs
  controller.quorum.fetch.timeout.ms: set quorum.fetchTimeoutMs
  controller.quorum.request.timeout.ms: set quorum.requestTimeoutMs
  health.port: ""
  metrics.port: ""
  ssl.keystore.certificate.chain.location: set tls.existingSecret
  ssl.keystore.key.location: set tls.existingSecret
  ssl.truststore.location: set tls.existingSecret
  ssl.client.auth: set tls.clientAuth
  log.level: set log.level of the chart
  log.format: set log.format of the chart
  tracing.fetch.ratio: set tracing.fetchRatio
  tracing.write.ratio: set tracing.writeRatio
  tracing.otlp.endpoint: set tracing.endpoint
  tracing.service.prefix: set tracing.servicePrefix
admin.config:
  admin.listener: ""
  admin.statefulset: ""
  admin.controller: ""
  controller.quorum.bootstrap.servers: ""
  health.port: ""
  metrics.port: ""
  security.protocol: set tls.enabled
  ssl.keystore.certificate.chain.location: set tls.existingSecret
  ssl.keystore.key.location: set tls.existingSecret
  ssl.truststore.location: set tls.existingSecret
  ssl.client.auth: set tls.clientAuth
  log.level: set log.level of the chart
  log.format: set log.format of the chart
  tracing.fetch.ratio: set tracing.fetchRatio
  tracing.write.ratio: set tracing.writeRatio
  tracing.otlp.endpoint: set tracing.endpoint
  tracing.service.prefix: set tracing.servicePrefix
operator.config:
  autojoin.statefulset: ""
  autojoin.namespace: ""
  autojoin.template: ""
  controller.quorum.fetch.timeout.ms: set quorum.fetchTimeoutMs
  health.port: ""
  metrics.port: ""
  security.protocol: set tls.enabled
  ssl.keystore.certificate.chain.location: set tls.existingSecret
  ssl.keystore.key.location: set tls.existingSecret
  ssl.truststore.location: set tls.existingSecret
  log.level: set log.level of the chart
  log.format: set log.format of the chart
  tracing.fetch.ratio: set tracing.fetchRatio
  tracing.write.ratio: set tracing.writeRatio
  tracing.otlp.endpoint: set tracing.endpoint
  tracing.service.prefix: set tracing.servicePrefix
{{- end -}}

{{/* Warnings about values that are allowed but risky. */}}
{{- define "quorate.warnings" -}}
{{- $replicas := int (include "quorate.replicas" .) -}}
{{- if eq $replicas 0 }}
NOTE: the StatefulSet is scaled to zero, and stays so: kubectl scale starts it again.
{{- else if eq (mod $replicas 2) 0 }}
WARNING: {{ $replicas }} controllers bear the loss of {{ div (sub $replicas 1) 2 }}, as {{ sub $replicas 1 }} would: an odd number is better.
{{- end }}
{{- if eq $replicas 1 }}
WARNING: a single controller bears no loss: nothing is committed while its pod is away.
{{- end }}
{{- if kindIs "invalid" .Values.replicaCount }}
{{- if include "quorate.renderedReplicas" . }}
NOTE: replicaCount is null, but this installation began with a number, and keeps one: left out, it would become 1.
{{- else }}
NOTE: spec.replicas is left out of the StatefulSet, which begins with 1: kubectl scale changes it, and neither an upgrade nor a rollback does.
{{- end }}
{{- else if and $replicas (ne $replicas (int .Values.replicaCount)) }}
NOTE: replicaCount is {{ .Values.replicaCount }}, and the StatefulSet has {{ $replicas }} replicas, which stay: kubectl scale changes them.
{{- end }}
{{- $spared := max 1 (div (sub $replicas 1) 2) }}
{{- if and .Values.podDisruptionBudget.enabled (gt (int .Values.podDisruptionBudget.maxUnavailable) (int $spared)) }}
WARNING: podDisruptionBudget.maxUnavailable is {{ .Values.podDisruptionBudget.maxUnavailable }}: drains may take the majority of {{ $replicas }} controllers at one moment, and nothing is committed then. 1 is right for any number.
{{- end }}
{{- range $name := list "electionTimeoutMs" "fetchTimeoutMs" }}
{{- $ms := index $.Values.quorum $name | int64 }}
{{- if lt $ms 500 }}
WARNING: quorum.{{ $name }} is {{ $ms }}: a slow flush or a busy node is taken for a lost leader. The default is right where controllers are less than 100 ms apart.
{{- else if gt $ms 30000 }}
WARNING: quorum.{{ $name }} is {{ $ms }}: when a leader is lost, nothing is committed for {{ div $ms 1000 }} s or more.
{{- end }}
{{- end }}
{{- if ne .Values.service.type "ClusterIP" }}
WARNING: service.type is {{ .Values.service.type }}, which serves no clients outside of the cluster by itself: they are sent on to the names of pods (docs/kubernetes.md, clients outside the cluster).
{{- end }}
{{- if not .Values.persistence.enabled }}
WARNING: persistence.enabled is false: a pod that moves has lost its disk, and when most do so at once, everything that was committed is lost.
{{- end }}
{{- with .Values.persistence.movedFrom }}
NOTE: persistence.movedFrom is {{ . }}: once all pods are ready the disks belong to them, and the value can be taken out.
{{- end }}
{{- if not .Values.tls.enabled }}
WARNING: tls.enabled is false: everybody who reaches port 9094 may change the metadata.
{{- end }}
{{- end -}}
