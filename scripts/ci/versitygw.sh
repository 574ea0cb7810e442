#!/bin/sh
# versitygw, an S3 server on a folder: BERTH_TEST_S3=$(scripts/ci/versitygw.sh | tail -n 1)
exec "$(dirname "$0")/go-program.sh" github.com/versity/versitygw/cmd/versitygw v1.8.0
