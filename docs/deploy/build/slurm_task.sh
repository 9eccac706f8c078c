#!/bin/sh
# One element of an array that slurm.sh submits: every so-many-th task of a stage, each tried up to five times.
stage=$1 tasks=$2 elements=$3 generation=$4
shift 4
task=$SLURM_ARRAY_TASK_ID
while [ "$task" -lt "$tasks" ]; do
	tries=5
	until giantstream build stage "$stage" --partition "$task" --generation "$generation" "$@"; do
		code=$?
		tries=$((tries - 1))
		if [ $code -eq 2 ] || [ $tries -eq 0 ]; then # 2: there is no such task
			exit $code
		fi
		sleep 1
	done
	task=$((task + elements))
done
