#!/bin/sh
# Submits a build to Slurm: slurm.sh -c pipeline.yaml. Every stage is an array job that waits for the one before.
# Not tried on a cluster.
set -e
plan=$(giantstream build plan "$@" --json)
generation=$(echo "$plan" | jq .generation)
after=
echo "$plan" | jq -r '.stages[] | "\(.name) \(.tasks)"' | while read -r stage tasks; do
	job=$(sbatch --parsable --requeue --cpus-per-task=2 --mem=2G --job-name="giantstream-$stage" \
		--array="0-$((tasks - 1))" ${after:+--dependency=afterok:$after} \
		--wrap="giantstream build stage $stage --partition \$SLURM_ARRAY_TASK_ID --generation $generation $*")
	after=$job
done
