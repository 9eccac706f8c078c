"""Builds a generation with the tasks on a Ray cluster: python ray_build.py -c pipeline.yaml. Not tried."""

import json
import subprocess
import sys

import ray


@ray.remote(max_retries=5, retry_exceptions=True, num_cpus=1)
def one(stage, partition, generation, options):
    subprocess.run(["giantstream", "build", "stage", stage, "--partition", str(partition), "--generation",
                    str(generation), *options], check=True)


def main(options):
    ray.init()
    plan = json.loads(subprocess.run(["giantstream", "build", "plan", "--json", *options], check=True,
                                     capture_output=True).stdout)
    for stage in plan["stages"]:
        ray.get([one.remote(stage["name"], i, plan["generation"], options) for i in range(stage["tasks"])])


main(sys.argv[1:])
