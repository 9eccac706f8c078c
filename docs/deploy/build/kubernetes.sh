#!/bin/sh
# Builds a generation as Indexed Jobs, one for each stage: kubernetes.sh IMAGE 16
# The configuration is the key pipeline.yaml of the config map giantstream. Not tried on a cluster.
set -e
image=$1
workers=$2
plan=$(giantstream build plan -c pipeline.yaml --json)
generation=$(echo "$plan" | jq .generation)
echo "$plan" | jq -r '.stages[] | "\(.name) \(.tasks)"' | while read -r stage tasks; do
	kubectl apply -f - <<JOB
apiVersion: batch/v1
kind: Job
metadata:
  name: giantstream-$generation-$stage
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
          args: [build, stage, $stage, --partition, \$(JOB_COMPLETION_INDEX), --generation, "$generation", -c, /etc/giantstream/pipeline.yaml]
          env: [{name: TMPDIR, value: /scratch}]
          resources: {requests: {cpu: "2", memory: 2Gi}, limits: {memory: 2Gi}}
          volumeMounts:
            - {name: config, mountPath: /etc/giantstream}
            - {name: scratch, mountPath: /scratch}
      volumes:
        - {name: config, configMap: {name: giantstream}}
        - {name: scratch, emptyDir: {}}
JOB
	kubectl wait --for=condition=complete --timeout=24h "job/giantstream-$generation-$stage"
done
