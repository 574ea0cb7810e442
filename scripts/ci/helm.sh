#!/bin/sh
# Helm, which installs the chart: BERTH_TEST_HELM=$(scripts/ci/helm.sh | tail -n 1)
exec "$(dirname "$0")/go-program.sh" helm.sh/helm/v3/cmd/helm v3.19.4
