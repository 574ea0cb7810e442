#!/bin/sh
# Prints the path of LiteLLM's proxy as the last line.
exec "$(dirname "$0")/pip-program.sh" litellm 1.106.12 proxy
