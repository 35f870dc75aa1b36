#!/bin/sh
# Formats the directory of this controller once; what is formatted is left alone.
#
# Only pod 0 may found a quorum, and only where none is known: neither by the record in
# /etc/quorate/bootstrap nor by anybody who answers. Every other empty disk joins what there is: one
# that replaces a lost disk must never vote under the old name or found a quorum of its own.
set -eu

config=/etc/quorate/config/controller.properties
record=/etc/quorate/bootstrap/clusterId
directory=/var/lib/quorate/metadata

format() {
    exec quorate storage format --config "$config" --cluster-id "$CLUSTER_ID" "$@"
}

if [ -e "$directory/meta.properties" ]; then
    echo "$directory is formatted already"
    exit 0
fi
if [ -s "$record" ]; then
    CLUSTER_ID=$(cat "$record")
    echo "the quorum is known by its record: this disk joins it"
    format --no-initial-controllers
fi
if [ "$QUORATE_NODE_ID" != 0 ]; then
    echo "pod 0 founds quorums: this disk joins"
    format --no-initial-controllers
fi
# A controller of a new quorum is in epoch 0; any other epoch means that there has been a leader.
if answer=$(quorate metadata-quorum --bootstrap-controller "$PEERS" --timeout-ms 3000 \
    ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} describe --status 2>&1); then
    echo "a quorum answers: this disk joins it"
    format --no-initial-controllers
fi
echo "$answer"
case $answer in
    *"epoch "[1-9]*)
        echo "a quorum has been there: this disk joins it"
        format --no-initial-controllers
        ;;
esac
echo "nobody knows of a quorum: this one is founded here"
# They have just been asked, and an answer that is not understood counts as none: a service mesh may accept
# connections for pods that are not there. Where a quorum was founded its record says so.
set --
for peer in $(echo "$PEERS" | tr , ' '); do
    set -- "$@" --ignore-server "$peer"
done
format --standalone "$@"
