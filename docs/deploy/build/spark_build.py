"""Builds a generation with Spark as a pool of processes: spark-submit spark_build.py -c pipeline.yaml

The program and the configuration are on all executors. Spark tries a task spark.task.maxFailures times (four, but
once with the master local[n]; local[n,4] gives four there, too).
"""

import json
import subprocess
import sys

from pyspark.sql import SparkSession


def main(options: list[str]) -> None:
    plan = json.loads(subprocess.run(["giantstream", "build", "plan", "--json", *options], check=True,
                                     stdout=subprocess.PIPE).stdout)
    spark = SparkSession.builder.appName("giantstream build").getOrCreate()
    for stage in plan["stages"]:
        name, generation = stage["name"], str(plan["generation"])

        def one(partition: int, name: str = name, generation: str = generation) -> None:
            subprocess.run(["giantstream", "build", "stage", name, "--partition", str(partition), "--generation",
                            generation, *options], check=True)

        spark.sparkContext.parallelize(range(stage["tasks"]), stage["tasks"]).foreach(one)
    spark.stop()


main(sys.argv[1:])
