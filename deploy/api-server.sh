# Sourced. Sends requests to the API server with the pod's credentials.
# shellcheck shell=sh

account=/var/run/secrets/kubernetes.io/serviceaccount
case $KUBERNETES_SERVICE_HOST in
*:*) server=https://[$KUBERNETES_SERVICE_HOST]:$KUBERNETES_SERVICE_PORT ;;
*) server=https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT ;;
esac

# api METHOD PATH [CURL_ARGUMENT...]
api() {
    method=$1 path=$2
    shift 2
    curl -sS --fail -m 10 --cacert $account/ca.crt -H "Authorization: Bearer $(cat $account/token)" \
        -X "$method" "$server$path" "$@"
}
