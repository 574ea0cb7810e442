#!/bin/sh
# Prints the path of schemathesis as the last line.
exec "$(dirname "$0")/pip-program.sh" schemathesis 4.32.5
