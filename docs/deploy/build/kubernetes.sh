#!/bin/sh
# Builds a generation as Indexed Jobs, one for each stage: kubernetes.sh IMAGE 16, where 16 pods run at a time.
# pipeline.yaml is here, and the key pipeline.yaml of the config map giantstream. This needs Kubernetes 1.29 or newer,
# and jq.
# Call it again after a failure: what is done is not done again.
set -e
image=$1
workers=$2
plan=$(giantstream build plan -c pipeline.yaml --json)
generation=$(echo "$plan" | jq .generation)
echo "$plan" | jq -r '.stages[] | "\(.name) \(.tasks)"' | while read -r stage tasks; do
	job=giantstream-$generation-$stage
	kubectl delete job "$job" --ignore-not-found </dev/null # of an earlier call
	kubectl apply -f - <<JOB
apiVersion: batch/v1
kind: Job
metadata:
  name: $job
spec:
  completionMode: Indexed
  completions: $tasks
  parallelism: $((tasks < workers ? tasks : workers))
  backoffLimitPerIndex: 5
  maxFailedIndexes: 0
  podFailurePolicy:
    rules:
      - action: FailJob # there is no such task
        onExitCodes: {containerName: task, operator: In, values: [2]}
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: task
          image: $image
          args: [build, stage, $stage, --partition, \$(JOB_COMPLETION_INDEX), --generation, "$generation",
                 -c, /etc/giantstream/pipeline.yaml]
          env: [{name: TMPDIR, value: /scratch}]
          resources: {requests: {cpu: "2", memory: 2Gi}, limits: {memory: 2Gi}}
          volumeMounts:
            - {name: config, mountPath: /etc/giantstream}
            - {name: scratch, mountPath: /scratch}
      volumes:
        - {name: config, configMap: {name: giantstream}}
        - {name: scratch, emptyDir: {}}
JOB
	# kubectl wait can wait for one condition only, and a job that failed is never complete.
	while :; do
		case $(kubectl get job "$job" -o 'jsonpath={.status.conditions[?(@.status=="True")].type}' </dev/null) in
		*Complete*) break ;;
		*Failed*)
			echo "$job failed; its pods' logs say why: kubectl logs -l job-name=$job --prefix" >&2
			exit 1
			;;
		esac
		sleep 5
	done
done
