"""A build as an Airflow DAG: the plan, and then a mapped task for every stage. Not tried."""

import json
import subprocess

import pendulum
from airflow.decorators import dag, task
from airflow.exceptions import AirflowFailException

OPTIONS = ["-c", "/etc/giantstream/pipeline.yaml"]
STAGES = ("scatter number index resolve link count merge vectorizer projection vectorise pifa trunk branch tree "
          "dataset encoder evaluate encode finish").split()


@dag(schedule=None, start_date=pendulum.datetime(2026, 1, 1), catchup=False)
def giantstream_build():
    @task
    def plan():
        done = subprocess.run(["giantstream", "build", "plan", "--json", *OPTIONS], check=True, capture_output=True)
        return json.loads(done.stdout)

    @task
    def tasks_of(the_plan, stage):
        count = next(s["tasks"] for s in the_plan["stages"] if s["name"] == stage)
        return [{"generation": the_plan["generation"], "stage": stage, "partition": i} for i in range(count)]

    @task(retries=5)
    def one(generation, stage, partition):
        done = subprocess.run(["giantstream", "build", "stage", stage, "--partition", str(partition),
                               "--generation", str(generation), *OPTIONS], check=False)
        if done.returncode == 2:
            raise AirflowFailException("there is no such task")
        done.check_returncode()

    the_plan = plan()
    before = the_plan
    for stage in STAGES:
        mapped = one.override(task_id=stage).expand_kwargs(tasks_of.override(task_id=f"{stage}_tasks")(the_plan, stage))
        before >> mapped
        before = mapped


giantstream_build()
