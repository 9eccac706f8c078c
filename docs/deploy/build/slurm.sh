#!/bin/sh
# Submits a build to Slurm: slurm.sh -c pipeline.yaml. Every stage is an array job that waits for the one before. If one
# fails for good, those that wait for it are cancelled; submit again then, and what is done is not done again.
# Needs slurm_task.sh beside it, and jq.
set -e
here=$(dirname "$0")
plan=$(giantstream build plan "$@" --json)
generation=$(echo "$plan" | jq .generation)
# Slurm refuses larger arrays. An element then does several tasks.
largest=$(scontrol show config | sed -n 's/^MaxArraySize *= *//p')
after=
echo "$plan" | jq -r '.stages[] | "\(.name) \(.tasks)"' | while read -r stage tasks; do
	elements=$((tasks < largest ? tasks : largest))
	after=$(sbatch --parsable --requeue --kill-on-invalid-dep=yes --cpus-per-task=2 --mem=2G \
		--job-name="giantstream-$generation-$stage" --array="0-$((elements - 1))" ${after:+--dependency=afterok:$after} \
		"$here/slurm_task.sh" "$stage" "$tasks" "$elements" "$generation" "$@")
	echo "$stage: job $after"
done
