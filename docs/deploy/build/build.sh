#!/bin/sh
# Builds a generation with so many tasks at a time: build.sh 4 -c pipeline.yaml
# It goes on where an earlier call stopped.
set -e
workers=$1
shift
plan=$(giantstream build plan "$@" --json)
generation=$(echo "$plan" | sed -n 's/^ *"generation": \([0-9]*\).*/\1/p')
echo "$plan" | sed -n 's/^ *"name": "\(.*\)",/\1/p; s/^ *"tasks": \([0-9]*\).*/\1/p' | paste - - |
	while read -r stage tasks; do
		seq 0 $((tasks - 1)) |
			xargs -P "$workers" -I{} giantstream build stage "$stage" --partition {} --generation "$generation" "$@"
	done
