#!/bin/sh
# Runs one job on Kubernetes without an operator: driver and executors are pods, the tables are shown
# here. It needs kubectl, and spark-submit of the version that is in the image, as in .venv after
# `make pipeline`:
#
#   PATH="$PWD/.venv/bin:$PATH" deploy/examples/spark/submit.sh JOB WORDS...
#
# Spark knows fewer ways than kubectl to say who asks (no plugins, not every kind of key): it is given
# a token of the driver's own account, which may do all that is needed and nothing else.
#
# IMAGE, NAMESPACE and EXECUTORS say what they say. CLAIM names a PersistentVolumeClaim that driver
# and executors find at /data, with a log to read or the place to write to.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { echo "usage: $0 JOB WORDS..., see quorate pipeline --help" >&2; exit 1; }
image=${IMAGE:-localhost/quorate-pipeline:dev}
namespace=${NAMESPACE:-$(kubectl config view --minify --output 'jsonpath={..namespace}')}
namespace=${namespace:-default}
server=$(kubectl config view --minify --output 'jsonpath={.clusters[0].cluster.server}')
account=quorate-spark
pod=quorate-$1-$(date -u +%Y%m%dt%H%M%Sz)

settings() {
    for setting in \
        kubernetes.namespace="$namespace" \
        kubernetes.container.image="$image" \
        kubernetes.container.image.pullPolicy=IfNotPresent \
        kubernetes.authenticate.driver.serviceAccountName="$account" \
        kubernetes.authenticate.submission.oauthTokenFile="$folder/token" \
        kubernetes.driver.pod.name="$pod" \
        kubernetes.executor.podNamePrefix="$pod" \
        kubernetes.driver.podTemplateFile="$here/pod.yaml" \
        kubernetes.executor.podTemplateFile="$here/pod.yaml" \
        kubernetes.driver.request.cores="${CORES:-1}" \
        kubernetes.executor.request.cores="${CORES:-1}" \
        driver.memory=1g driver.memoryOverhead=512m \
        executor.instances="${EXECUTORS:-2}" executor.memory=1g executor.memoryOverhead=512m \
        log.level=ERROR sql.shuffle.partitions=8; do
        echo "spark.${setting%%=*} ${setting#*=}"
    done
    if [ -s "$folder/authorities" ]; then
        echo "spark.kubernetes.authenticate.submission.caCertFile $folder/authorities"
    fi
    for part in ${CLAIM:+driver executor}; do
        volume=spark.kubernetes.$part.volumes.persistentVolumeClaim.data
        echo "$volume.mount.path /data"
        echo "$volume.options.claimName $CLAIM"
    done
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
kubectl --namespace "$namespace" create token "$account" --duration 24h > "$folder/token"
kubectl config view --minify --raw --flatten \
    --output 'go-template={{with (index .clusters 0).cluster}}{{with index . "certificate-authority-data"}}{{.|base64decode}}{{end}}{{end}}' \
    > "$folder/authorities"
settings > "$folder/settings"
KUBECONFIG=/dev/null "${SPARK_SUBMIT:-spark-submit}" --master "k8s://$server" --deploy-mode cluster \
    --name "quorate-$1" --properties-file "$folder/settings" local:///opt/quorate/pipeline.py "$@" \
    > "$folder/log" 2>&1 || {
    grep -v '^[[:space:]]*at ' "$folder/log" | tail -n 20 >&2
    exit 1
}
kubectl --namespace "$namespace" logs "$pod"
phase=$(kubectl --namespace "$namespace" get pod "$pod" --output 'jsonpath={.status.phase}')
# The pod stays with its log until somebody deletes it.
[ "$phase" = Succeeded ] || { echo "pod $pod: $phase" >&2; exit 1; }
