"""Builds a generation with the tasks on a Ray cluster: python ray_build.py -c pipeline.yaml

Ray starts on this machine, unless RAY_ADDRESS names a cluster. The program and the configuration are on all its nodes.
"""

import json
import subprocess
import sys

import ray


class NoSuchTask(Exception):
    """Trying again does not help."""


@ray.remote(max_retries=5, retry_exceptions=[subprocess.CalledProcessError], num_cpus=1)
def one(stage: str, partition: int, generation: int, options: list[str]) -> None:
    done = subprocess.run(["giantstream", "build", "stage", stage, "--partition", str(partition), "--generation",
                           str(generation), *options], check=False)
    if done.returncode == 2:
        raise NoSuchTask(f"{generation}/{stage}/{partition}")
    done.check_returncode()


def main(options: list[str]) -> None:
    plan = json.loads(subprocess.run(["giantstream", "build", "plan", "--json", *options], check=True,
                                     stdout=subprocess.PIPE).stdout)
    ray.init()
    for stage in plan["stages"]:
        ray.get([one.remote(stage["name"], i, plan["generation"], options) for i in range(stage["tasks"])])


main(sys.argv[1:])
