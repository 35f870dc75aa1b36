{{/* What a schema cannot say. Everything that is wrong is told at once. */}}
{{- define "quorate.check" -}}
{{- $wrong := list -}}
{{- if and (not (kindIs "invalid" .Values.replicaCount)) (lt (int .Values.replicaCount) 1) -}}
{{- $wrong = append $wrong "replicaCount is 0: a quorum needs at least one controller; choose 1, 3 or 5" -}}
{{- end -}}
{{- if and .Values.tls.existingSecret .Values.tls.certManager.enabled -}}
{{- $wrong = append $wrong "tls.existingSecret and tls.certManager.enabled are both set: choose one source of certificates" -}}
{{- end -}}
{{- if and .Values.tls.certManager.enabled (not .Values.tls.certManager.issuerRef.name) -}}
{{- $wrong = append $wrong "tls.certManager.enabled needs tls.certManager.issuerRef.name: name an Issuer or a ClusterIssuer" -}}
{{- end -}}
{{- if and (or .Values.tls.existingSecret .Values.tls.certManager.enabled) (not .Values.tls.enabled) -}}
{{- $wrong = append $wrong "tls.enabled is false, but a source of certificates is given: set tls.enabled, or take the source away" -}}
{{- end -}}
{{- if and .Values.backup.enabled (not .Values.persistence.enabled) -}}
{{- $wrong = append $wrong "backup.enabled needs persistence.enabled: there is no disk to take a backup from" -}}
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
{{- range $key := list "node.id" "metadata.log.dir" "listeners" "advertised.listeners" "controller.listener.names" "listener.security.protocol.map" "controller.quorum.bootstrap.servers" "controller.quorum.voters" -}}
{{- if hasKey $.Values.config $key -}}
{{- $wrong = append $wrong (printf "config has %s, which is the chart's own: take it out" $key) -}}
{{- end -}}
{{- end -}}
{{- if $wrong -}}
{{- fail (printf "\n%s" (join "\n" $wrong)) -}}
{{- end -}}
{{- end -}}

{{/* What is allowed and unwise. */}}
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
{{- if not .Values.persistence.enabled }}
WARNING: persistence.enabled is false: a pod that moves has lost its disk, and when most do so at once, everything that was committed is lost.
{{- end }}
{{- if not .Values.tls.enabled }}
WARNING: tls.enabled is false: everybody who reaches port 9094 may change the metadata.
{{- end }}
{{- end -}}
