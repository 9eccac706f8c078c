"""A build as a DAG for Airflow 3: the plan, and then a mapped task for every stage.

The program, and the configuration that GIANTSTREAM_CONFIG names, are on all workers.
"""

import json
import os
import subprocess

import pendulum
from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

OPTIONS = ["-c", os.environ.get("GIANTSTREAM_CONFIG", "/etc/giantstream/pipeline.yaml")]
# All stages that a plan may have. What is not known when Airflow reads this file is which of them a plan has, and how
# many tasks. A stage without tasks is skipped.
STAGES = ("scatter number index resolve link count merge vectorizer projection vectorise spread pifa features trunk "
          "deal branch tree mapping dataset encoder encode evaluate fill compare finish").split()
# At core.max_map_length, 1024 by default, Airflow refuses to map. A mapped task then does several tasks.
WIDTH = 1024


@dag(schedule=None, start_date=pendulum.datetime(2026, 1, 1), catchup=False)
def giantstream_build():
    @task(retries=5)
    def plan():
        done = subprocess.run(["giantstream", "build", "plan", "--json", *OPTIONS], check=True, stdout=subprocess.PIPE)
        made = json.loads(done.stdout)
        names = [stage["name"] for stage in made["stages"]]
        if names != [name for name in STAGES if name in names]:
            raise AirflowFailException(f"STAGES of this DAG lack stages of the plan: {' '.join(names)}")
        return made

    @task
    def tasks_of(the_plan, stage):
        count = next((s["tasks"] for s in the_plan["stages"] if s["name"] == stage), 0)
        width = min(count, WIDTH)
        return [{"generation": the_plan["generation"], "stage": stage, "partitions": list(range(i, count, width))}
                for i in range(width)]

    @task(retries=5, trigger_rule="none_failed")  # a stage before it may have been skipped
    def some(generation, stage, partitions):
        for partition in partitions:
            done = subprocess.run(["giantstream", "build", "stage", stage, "--partition", str(partition),
                                   "--generation", str(generation), *OPTIONS], check=False)
            if done.returncode == 2:
                raise AirflowFailException("there is no such task")
            done.check_returncode()

    the_plan = plan()
    before = the_plan
    for stage in STAGES:
        mapped = some.override(task_id=stage).expand_kwargs(
            tasks_of.override(task_id=f"{stage}_tasks")(the_plan, stage))
        before >> mapped
        before = mapped


giantstream_build()
