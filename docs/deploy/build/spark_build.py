"""Builds a generation with Spark as a pool of processes: spark-submit spark_build.py -c pipeline.yaml. Not tried."""

import json
import subprocess
import sys

from pyspark.sql import SparkSession


def main(options):
    spark = SparkSession.builder.appName("giantstream build").getOrCreate()
    plan = json.loads(subprocess.run(["giantstream", "build", "plan", "--json", *options], check=True,
                                     capture_output=True).stdout)
    for stage in plan["stages"]:
        name, generation = stage["name"], str(plan["generation"])

        def one(partition, name=name, generation=generation):
            subprocess.run(["giantstream", "build", "stage", name, "--partition", str(partition), "--generation",
                            generation, *options], check=True)

        spark.sparkContext.parallelize(range(stage["tasks"]), stage["tasks"]).foreach(one)


main(sys.argv[1:])
